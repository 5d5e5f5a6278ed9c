package mad

import "fmt"

// Class is a management class (IBTA volume 1, 13.4.4).
type Class uint8

// Management classes. The two subnet management classes live on QP0, all
// others on QP1.
const (
	ClassSubn              Class = 0x01 // subnet management, LID routed
	ClassSubnAdm           Class = 0x03 // subnet administration, class version 2
	ClassPerf              Class = 0x04 // performance management
	ClassBM                Class = 0x05 // baseboard management
	ClassDevMgt            Class = 0x06 // device management
	ClassComMgt            Class = 0x07 // communication management
	ClassSNMP              Class = 0x08 // SNMP tunnelling
	ClassVendorVS          Class = 0x0A // NVIDIA vendor-specific class
	ClassVendorAM          Class = 0x0B // NVIDIA SHARP aggregation management
	ClassVendorN2N         Class = 0x0C // NVIDIA node to node
	ClassDevAdm            Class = 0x10 // device administration
	ClassBIS               Class = 0x12 // boot information service
	ClassCongestionControl Class = 0x21 // congestion control, class version 2
	ClassSubnDR            Class = 0x81 // subnet management, directed route
)

// String names the class as the standard does, and unknown ones by number.
func (c Class) String() string {
	switch c {
	case ClassSubn:
		return "Subn"
	case ClassSubnAdm:
		return "SubnAdm"
	case ClassPerf:
		return "Perf"
	case ClassBM:
		return "BM"
	case ClassDevMgt:
		return "DevMgt"
	case ClassComMgt:
		return "ComMgt"
	case ClassSNMP:
		return "SNMP"
	case ClassVendorVS:
		return "VendorVS"
	case ClassVendorAM:
		return "VendorAM"
	case ClassVendorN2N:
		return "VendorN2N"
	case ClassDevAdm:
		return "DevAdm"
	case ClassBIS:
		return "BIS"
	case ClassCongestionControl:
		return "CongestionControl"
	case ClassSubnDR:
		return "SubnDR"
	default:
		return fmt.Sprintf("Class(0x%02x)", uint8(c))
	}
}

// Method is the request or answer of a MAD (IBTA volume 1, 13.4.5). Bit 7, R, marks a response.
type Method uint8

// Methods. A Set is answered with GetResp.
const (
	MethodGet          Method = 0x01
	MethodSet          Method = 0x02
	MethodSend         Method = 0x03
	MethodTrap         Method = 0x05
	MethodReport       Method = 0x06
	MethodTrapRepress  Method = 0x07
	MethodGetTable     Method = 0x12
	MethodGetTrace     Method = 0x13 // GetTraceTable, answered with GetTableResp
	MethodGetMulti     Method = 0x14
	MethodDelete       Method = 0x15
	MethodGetResp      Method = 0x81
	MethodReportResp   Method = 0x86
	MethodGetTableResp Method = 0x92
	MethodGetMultiResp Method = 0x94
	MethodDeleteResp   Method = 0x95

	responseBit Method = 0x80
)

// IsResponse reports whether the method has the R bit, or is TrapRepress.
func (m Method) IsResponse() bool { return m&responseBit != 0 || m == MethodTrapRepress }

// Response is the method that answers m; a response answers with itself.
func (m Method) Response() Method {
	switch m {
	case MethodSet:
		return MethodGetResp
	case MethodTrap, MethodTrapRepress:
		return MethodTrapRepress
	case MethodGetTrace:
		return MethodGetTableResp
	default:
		return m | responseBit
	}
}

// String names the method as the standard does, and unknown ones by number.
func (m Method) String() string {
	switch m {
	case MethodGet:
		return "Get"
	case MethodSet:
		return "Set"
	case MethodSend:
		return "Send"
	case MethodTrap:
		return "Trap"
	case MethodReport:
		return "Report"
	case MethodTrapRepress:
		return "TrapRepress"
	case MethodGetTable:
		return "GetTable"
	case MethodGetTrace:
		return "GetTraceTable"
	case MethodGetMulti:
		return "GetMulti"
	case MethodDelete:
		return "Delete"
	case MethodGetResp:
		return "GetResp"
	case MethodReportResp:
		return "ReportResp"
	case MethodGetTableResp:
		return "GetTableResp"
	case MethodGetMultiResp:
		return "GetMultiResp"
	case MethodDeleteResp:
		return "DeleteResp"
	default:
		return fmt.Sprintf("Method(0x%02x)", uint8(m))
	}
}
