package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/perf"
)

// LinkError is an error on a link that the port which detects it counts.
type LinkError uint8

// Errors of links. Those with a trap raise it each time, once in the interval
// that SubnetTimeOut sets.
const (
	SymbolError      LinkError = iota // a symbol was not understood
	ReceiveError                      // a packet came damaged
	RecoveryError                     // the link recovered by itself
	IntegrityError                    // more local errors than PortInfo.LocalPhyErrors: trap 129
	OverrunError                      // more overruns than PortInfo.OverrunErrors: trap 130
	FlowControlError                  // the flow control watchdog expired: trap 131
)

var linkErrorNames = [...]string{"symbol error", "receive error", "recovery", "link integrity", "buffer overrun", "flow control"}

// String names the error.
func (e LinkError) String() string {
	if int(e) >= len(linkErrorNames) {
		return fmt.Sprintf("link error %d", uint8(e))
	}
	return linkErrorNames[e]
}

// LinkErrors causes the given number of errors at a port.
func (f *Fabric) LinkErrors(node string, num ib.PortNum, kind LinkError, times uint16) error {
	return f.change("link errors", func() error {
		p, err := f.findPort(node, num)
		switch {
		case err != nil:
			return err
		case num == 0:
			return fmt.Errorf("port 0 of %q has no link", p.node.name)
		case int(kind) >= len(linkErrorNames):
			return fmt.Errorf("%v is unknown", kind)
		case times == 0:
			return nil
		}
		c, few := &p.counters, uint8(min(times, 255))
		switch kind {
		case SymbolError:
			c.SymbolErrorCounter = perf.Saturate16(c.SymbolErrorCounter, times)
		case ReceiveError:
			c.PortRcvErrors = perf.Saturate16(c.PortRcvErrors, times)
		case RecoveryError:
			c.LinkErrorRecoveryCounter = perf.Saturate8(c.LinkErrorRecoveryCounter, few)
		case IntegrityError:
			c.LocalLinkIntegrityErrors = min(perf.Saturate8(c.LocalLinkIntegrityErrors, few), 0xF)
			p.sendLinkErrorTrap(mad.TrapLinkIntegrity)
		case OverrunError:
			c.ExcessiveBufferOverrunErrors = min(perf.Saturate8(c.ExcessiveBufferOverrunErrors, few), 0xF)
			p.sendLinkErrorTrap(mad.TrapBufferOverrun)
		default:
			p.sendLinkErrorTrap(mad.TrapFlowControl)
		}
		return nil
	})
}

// sendLinkErrorTrap reports a port whose link is bad: traps 129 to 131.
func (p *port) sendLinkErrorTrap(number mad.TrapNum) {
	from := p.endPort()
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &mad.Trap129{
		NoticeHeader: p.node.noticeHeader(mad.NoticeUrgent, number, from),
		LID:          from.info.LID, PortNum: p.num,
	}))
	p.node.paceTrap(from, number, p.num, &data)
}

// SetSystemImage sets another system image GUID of a node, and the node reports it by trap 145. SetGUIDs changes GUIDs
// without a report.
func (f *Fabric) SetSystemImage(node string, guid ib.GUID) error {
	return f.change("set system image GUID", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		n.systemGUID = guid
		for _, p := range n.ports {
			if p == nil {
				continue
			}
			p.encodeNodeInfo()
			if !p.isEnd() || p.info.PortState <= ib.PortDown {
				continue
			}
			var data [mad.DataSize]byte
			must(mad.Encode(data[:], &mad.Trap145{
				NoticeHeader: n.noticeHeader(mad.NoticeInformational, mad.TrapSystemImageGUID, p),
				LID:          p.info.LID, NewSystemImageGUID: guid,
			}))
			n.keepTrap(p, mad.TrapSystemImageGUID, &data)
		}
		return nil
	})
}
