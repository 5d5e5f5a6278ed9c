package mad

// VendorDiag is diagnostic data of the vendor (attribute 0x0030; IBTA volume
// 1, 14.2.5.14). The modifier is the index, beginning with 0.
type VendorDiag struct {
	NextIndex uint16   `mad:"0,16"`     // index to ask next; 0: no more
	DiagData  [62]byte `mad:"16,8,hex"` // meaning is the vendor's
}
