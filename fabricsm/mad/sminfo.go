package mad

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// SMInfo is how subnet managers speak to each other (attribute 0x0020; IBTA
// volume 1, 14.2.5.13). An SM answers it, not the agent of the device.
type SMInfo struct {
	GUID     ib.GUID    `mad:"0,64"`   // port GUID of the SM
	SMKey    ib.SMKey   `mad:"64,64"`  // none unless the requester is authenticated
	ActCount uint32     `mad:"128,32"` // grows with the SM's activity; a stuck count means a dead SM
	Priority uint8      `mad:"160,4"`  // 0 lowest to 15 highest
	SMState  ib.SMState `mad:"164,4"`
}

// SMInfoControl is the attribute modifier of a Set of SMInfo.
type SMInfoControl uint32

// Control codes (IBTA volume 1, 14.4.1).
const (
	SMInfoHandover    SMInfoControl = 1
	SMInfoAcknowledge SMInfoControl = 2
	SMInfoDisable     SMInfoControl = 3
	SMInfoStandby     SMInfoControl = 4
	SMInfoDiscover    SMInfoControl = 5
)

// String names the control code.
func (c SMInfoControl) String() string {
	switch c {
	case SMInfoHandover:
		return "HANDOVER"
	case SMInfoAcknowledge:
		return "ACKNOWLEDGE"
	case SMInfoDisable:
		return "DISABLE"
	case SMInfoStandby:
		return "STANDBY"
	case SMInfoDiscover:
		return "DISCOVER"
	default:
		return fmt.Sprintf("SMInfoControl(%d)", uint32(c))
	}
}
