package lock

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"

	"portcullis/attest"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// itemsOf returns settings in the form of statements, in their order.
func itemsOf(c profile.Card) []attest.Item {
	items := make([]attest.Item, 0, len(c.Readings))
	for _, r := range c.Readings {
		items = append(items, itemOf(r))
	}
	slices.SortFunc(items, func(a, b attest.Item) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Function, b.Function))
	})
	return items
}

func itemOf(r profile.Reading) attest.Item {
	i := attest.Item{
		Class: uint8(r.Address.Class()), Index: r.Address.Index(),
		Port: r.Address.Port(), Host: r.Address.Host(), Function: r.Address.Function(),
	}
	switch r.Support {
	case profile.Supported:
		i.Supported = attest.Yes
	case profile.NotSupported:
		i.Supported = attest.No
	case profile.SupportUnknown:
	}
	if r.Current.State == profile.Read {
		i.Current = hex.EncodeToString(r.Current.Item.Data)
	}
	if r.Next.State == profile.Read {
		i.Next = hex.EncodeToString(r.Next.Item.Data)
		i.Priority, i.Override = priorityOf(r.Next.Item.Priority), answerOf(r.Next.Item.OverrideEnabled)
	}
	return i
}

func priorityOf(p nvconfig.Priority) attest.Priority {
	switch p {
	case nvconfig.User:
		return attest.PriorityUser
	case nvconfig.OEM:
		return attest.PriorityOEM
	case nvconfig.MLNX:
		return attest.PriorityMLNX
	default:
		return attest.PriorityUnknown
	}
}

func answerOf(b bool) attest.Answer {
	if b {
		return attest.Yes
	}
	return attest.No
}

// stored reports that the adapter has the item for the next boot already.
func stored(c profile.Card, i nvconfig.Item) bool {
	at := slices.IndexFunc(c.Readings, func(r profile.Reading) bool { return r.Address == i.Address })
	return at >= 0 && c.Readings[at].Next.State == profile.Read && bytes.Equal(c.Readings[at].Next.Item.Data, i.Data)
}
