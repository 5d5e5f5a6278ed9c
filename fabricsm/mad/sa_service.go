package mad

import "portcullis/fabricsm/ib"

// ServiceRecord is a service that a port offers (attribute 0x0031; IBTA volume 1, 15.2.5.14). The service defines the
// meaning of the data.
type ServiceRecord struct {
	ServiceID     ib.ServiceID  `mad:"0,64"`    // RID
	ServiceGID    ib.GID        `mad:"64,128"`  // RID
	ServicePKey   ib.PKey       `mad:"192,16"`  // RID; who has it may see the record
	_             reserved      `mad:"208,16"`  //
	ServiceLease  uint32        `mad:"224,32"`  // seconds; LeaseForever: until it is deleted
	ServiceKey    ib.ServiceKey `mad:"256,128"` // none in answers to untrusted requests
	ServiceName   [64]byte      `mad:"384,8,text"`
	ServiceData8  [16]uint8     `mad:"896,8,hex"`
	ServiceData16 [8]uint16     `mad:"1024,16,hex"`
	ServiceData32 [4]uint32     `mad:"1152,32,hex"`
	ServiceData64 [2]uint64     `mad:"1280,64,hex"`
}

// LeaseForever is the ServiceLease of a record that does not expire.
const LeaseForever = 0xFFFFFFFF

// Name returns the ServiceName up to the first NUL. Unprintable characters are replaced by U+FFFD.
func (r *ServiceRecord) Name() string { return printable(r.ServiceName[:]) }
