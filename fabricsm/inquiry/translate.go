package inquiry

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Request returns the SMP that is sent for the request of a tool: the same Get with another transaction id, by directed route, and with the M_Key
// that key returns for the place in front of the device. A device that the fabric does not have is sent no key. lid is where the tool sends its
// request, if that is not a directed route. The error wraps [ErrRefused].
func Request(tool *mad.MAD, lid ib.LID, id ib.TID, w *Ways, key func(ib.Place) ib.MKey) (mad.MAD, error) {
	var out mad.MAD
	if err := Check(tool); err != nil {
		return out, err
	}
	var to Target
	if tool.IsDR() {
		to = w.Along(tool.Route())
	} else {
		var there bool
		if to, there = w.ToLID(lid); !there {
			return out, fmt.Errorf("%w: no device with LID %d is known, or no way to it", ErrRefused, lid)
		}
	}
	var shown ib.MKey
	if to.Known {
		shown = key(to.Place)
	}
	mad.NewSMP(&out, mad.Header{Method: mad.MethodGet, TID: id, Attr: tool.Attr(), Mod: tool.Mod()}, &to.Route, shown)
	return out, nil
}

// Answer returns what a tool sees of the answer to sent, which was made of its request. It reports false if got is no answer to sent. No key
// is left in it.
func Answer(tool, sent, got *mad.MAD) (mad.MAD, bool) {
	if !got.IsDR() || got.Method() != mad.MethodGetResp || !got.Returning() || got.Attr() != sent.Attr() || got.Mod() != sent.Mod() || got.Route() != sent.Route() {
		return mad.MAD{}, false
	}
	out := *got
	mad.Redact(&out)
	if tool.IsDR() {
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
