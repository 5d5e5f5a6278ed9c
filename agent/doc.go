// Package agent is the life of portcullis-agent on a host that is being
// provisioned: read the adapters, measure them into the TPM, attest to the
// service, wait for the verdict.
//
// Keys are made anew in every run and never stored. What is stored is what
// was measured in this boot, because the service must be told the whole list,
// and the last verdict. A run may be cut off at any instant and started again.
package agent
