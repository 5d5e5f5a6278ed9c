// Package proving reads the fabric at an operator's request, and now and then by itself, and proves the isolation of tenants,
// beside the Subnet Manager and without its memory. It has the port, the records of the store and the stored keys of devices.
package proving
