package diag

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// nodeName is the name of the node at which tools seem to be.
const nodeName = "portcullis"

// network implements ibsim.Network: what its clients ask, the service asks.
type network struct {
	ctx    context.Context //nolint:containedctx // of the server, whose interface has none
	client *client.Client
	id     string
	say    func(string)

	mu   sync.Mutex
	told map[string]bool // reasons that were said
}

// Attach implements ibsim.Network. Every client is at the one node, and none is a Subnet Manager.
func (n *network) Attach(string, bool) (ibsim.Attachment, error) {
	return &attachment{network: n, closed: make(chan struct{})}, nil
}

// ask has the service ask, and returns the answers in the order of the requests.
func (n *network) ask(packets []transport.Packet) []transport.Packet {
	out := make([]transport.Packet, 0, len(packets))
	for len(packets) > 0 {
		some := packets[:min(len(packets), v1.MaxInquiryMADs)]
		packets = packets[len(some):]
		q := v1.InquiryMADs{MADs: make([]v1.InquiryMAD, len(some))}
		for i := range some {
			q.MADs[i] = v1.InquiryMAD{LID: some[i].LID, MAD: some[i].MAD[:]}
		}
		answers, err := n.client.AskInquiry(n.ctx, n.id, q)
		if err != nil {
			n.report(err.Error())
		}
		for i := range some {
			var a v1.InquiryAnswer
			if err == nil && i < len(answers.Answers) {
				a = answers.Answers[i]
			}
			out = append(out, n.answer(&some[i], &a))
		}
	}
	return out
}

// answer returns what a tool receives: the answer, or its own request, which was not answered.
func (n *network) answer(request *transport.Packet, a *v1.InquiryAnswer) transport.Packet {
	if a.Refused != "" {
		n.report(a.Refused)
	}
	out := *request
	if len(a.MAD) != mad.Size {
		out.Undelivered = true
		return out
	}
	copy(out.MAD[:], a.MAD)
	return out
}

// report says a reason once.
func (n *network) report(why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told[why] || len(n.told) >= maxTold {
		return
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[why] = true
	n.say(why)
}

// maxTold bounds the reasons that are said.
const maxTold = 20

// attachment is one client of the socket.
type attachment struct {
	*network
	once   sync.Once
	closed chan struct{}
}

// Node implements ibsim.Attachment.
func (a *attachment) Node() string { return nodeName }

// Query implements ibsim.Attachment: it reads the port of the service.
func (a *attachment) Query(attr mad.AttrID, mod uint32) (data [mad.DataSize]byte, ok bool) {
	ask := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&ask.MAD, mad.Header{Method: mad.MethodGet, TID: 1, Attr: attr, Mod: mod}, &mad.Route{}, ib.MKey{})
	got := a.ask([]transport.Packet{ask})
	if got[0].Undelivered || got[0].MAD.Status() != mad.StatusOK {
		return data, false
	}
	copy(data[:], got[0].MAD.Data())
	return data, true
}

// Exchange implements ibsim.Attachment.
func (a *attachment) Exchange(packets, arrived []transport.Packet) []transport.Packet {
	return append(arrived, a.ask(packets)...)
}

// Receive implements ibsim.Attachment: no other client sends anything to a tool.
func (a *attachment) Receive([]transport.Packet) (int, error) {
	<-a.closed
	return 0, transport.ErrClosed
}

// SetIsSM implements ibsim.Attachment. No tool is a Subnet Manager.
func (a *attachment) SetIsSM(bool) {}

// Close implements ibsim.Attachment.
func (a *attachment) Close() { a.once.Do(func() { close(a.closed) }) }

// glob returns the first file that a pattern matches; none: empty.
func glob(pattern string) string {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// find returns the path of a program, also in the system directories that an ordinary user's PATH leaves out.
func find(program string) (string, error) {
	p, err := exec.LookPath(program)
	if err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if p, e := exec.LookPath(filepath.Join(dir, program)); e == nil && filepath.Base(program) == program {
			return p, nil
		}
	}
	return "", err
}
