// Package agent is the life of portcullis-agent on a host that is being provisioned: read the adapters, measure them into
// the TPM, attest to the service, wait for the verdict.
//
// Every run creates its keys again and never stores them. The agent stores the statements that it measured in this boot,
// because the service needs the whole list, and the last verdict. A run may be interrupted at any instant and started
// again.
package agent
