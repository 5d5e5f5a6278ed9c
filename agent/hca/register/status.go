package register

import "fmt"

// Status is how a command ended, as the firmware says it (mlx5_ifc.h,
// MLX5_CMD_STAT_*).
type Status uint8

// Statuses.
const (
	OK               Status = 0x00
	InternalError    Status = 0x01
	BadOperation     Status = 0x02 // no such command, or method
	BadParameter     Status = 0x03
	BadSystemState   Status = 0x04 // of registers: not supported
	BadResource      Status = 0x05
	Busy             Status = 0x06 // try again later
	LimitExceeded    Status = 0x08
	BadResourceState Status = 0x09
	BadIndex         Status = 0x0A
	NoResources      Status = 0x0F
	BadInputLength   Status = 0x50
	BadOutputLength  Status = 0x51
)

func (s Status) String() string {
	switch s {
	case OK:
		return "ok"
	case InternalError:
		return "internal error"
	case BadOperation:
		return "bad operation"
	case BadParameter:
		return "bad parameter"
	case BadSystemState:
		return "not supported, or not in this state"
	case BadResource:
		return "bad resource"
	case Busy:
		return "busy"
	case LimitExceeded:
		return "limit exceeded"
	case BadResourceState:
		return "bad resource state"
	case BadIndex:
		return "bad index"
	case NoResources:
		return "no resources"
	case BadInputLength:
		return "bad input length"
	case BadOutputLength:
		return "bad output length"
	}
	return fmt.Sprintf("status 0x%02X", uint8(s))
}

// Error is a command that the firmware refused. It is not a failure to reach
// the firmware.
type Error struct {
	What     string // "MNVDA write", "QUERY_HCA_VPORT_CONTEXT"
	Status   Status
	Syndrome uint32 // the firmware's own number for it; 0: none
}

func (e *Error) Error() string {
	if e.Syndrome == 0 {
		return fmt.Sprintf("%s: the firmware answers: %v", e.What, e.Status)
	}
	return fmt.Sprintf("%s: the firmware answers: %v (syndrome 0x%08X)", e.What, e.Status, e.Syndrome)
}

// Is reports the same status, whatever was asked: errors.Is(err, register.ErrBusy).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.What == "" && t.Status == e.Status
}

// Errors for callers to distinguish with errors.Is.
var (
	ErrBusy         error = &Error{Status: Busy}
	ErrNotSupported error = &Error{Status: BadSystemState}
	ErrBadParameter error = &Error{Status: BadParameter}
)
