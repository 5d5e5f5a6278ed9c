// Package shadow lets a Subnet Manager run beside the master of a fabric without a write.
//
// A [Port] is the port that the driver of a Subnet Manager runs on. Its Gets go to the fabric. Its Sets do not: in place of
// each, the device is asked what it has there, and the answer to the Set is made of that and of what was to be written.
// Later Gets are answered by the device, with what was written since in place of what the device has. So the Subnet Manager
// settles on the fabric as it would be after it had taken over, and [Port.Report] is what that would change.
//
// Nothing but Gets of subnet management can be sent: the one type that holds the real port makes each packet itself. The
// port is not announced as one of a Subnet Manager, requests of others are not answered, and traps are not repressed.
package shadow
