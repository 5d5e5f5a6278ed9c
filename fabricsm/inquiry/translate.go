package inquiry

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Sent is a request that is sent for a tool.
type Sent struct {
	MAD mad.MAD
	LID ib.LID // where it goes; ib.PermissiveLID by directed route
}

// Request returns what is sent for the request of a tool: the same Get with another transaction id. An SMP is sent by directed route, and with the
// M_Key that key returns for the place in front of the device. A device that the fabric does not have is sent no key. Others are sent to their
// LID. lid is where the tool sends its request, if that is not a directed route. The error wraps [ErrRefused].
func Request(tool *mad.MAD, lid ib.LID, id ib.TID, w *Ways, key func(ib.Place) ib.MKey) (Sent, error) {
	if err := Check(tool); err != nil {
		return Sent{}, err
	}
	var to Target
	if tool.IsDR() {
		to = w.Along(tool.Route())
	} else {
		var there bool
		if to, there = w.ToLID(lid); !there {
			return Sent{}, fmt.Errorf("%w: no device with LID %d is known, or no way to it", ErrRefused, lid)
		}
	}
	if !tool.IsSMP() {
		out := Sent{MAD: *tool, LID: lid}
		out.MAD.SetTID(id)
		return out, nil
	}
	var shown ib.MKey
	if to.Known {
		shown = key(to.Place)
	}
	out := Sent{LID: ib.PermissiveLID}
	mad.NewSMP(&out.MAD, mad.Header{Method: mad.MethodGet, TID: id, Attr: tool.Attr(), Mod: tool.Mod()}, &to.Route, shown)
	return out, nil
}

// Answer returns what a tool sees of got, which came from a LID as the answer to sent, which was made of its request. It reports false if
// it is no answer to that. No key is left in it.
func Answer(tool *mad.MAD, sent *Sent, got *mad.MAD, from ib.LID) (mad.MAD, bool) {
	is := &sent.MAD
	switch {
	case got.Method() != mad.MethodGetResp || got.Class() != is.Class() || got.Attr() != is.Attr() || got.Mod() != is.Mod():
		return mad.MAD{}, false
	case is.IsDR() && (!got.Returning() || got.Route() != is.Route()), !is.IsDR() && from != sent.LID:
		return mad.MAD{}, false
	}
	out := *got
	mad.Redact(&out)
	if tool.IsDR() || !tool.IsSMP() {
		out.SetTID(tool.TID())
		return out, true
	}
	var routed mad.MAD
	h := tool.Header()
	h.Method, h.Status = mad.MethodGetResp, got.Status()
	mad.NewSMP(&routed, h, nil, ib.MKey{})
	copy(routed.Data(), out.Data())
	return routed, true
}
