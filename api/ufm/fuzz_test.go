package ufm

import (
	"testing"

	"portcullis/fabricsm/ib"
)

// FuzzOrder: each body is an order for a P_Key that may be changed, or an error.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"pkey":"0x5","guids":["0002c90300000001"],"memberships":["full"],"index0":true,"ip_over_ib":true}`))
	f.Add([]byte(`{"pkey":"32766","hosts_names":"a,b"}`))
	f.Add([]byte(`{"pkey":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, k, err := parseOrder(data)
		if err != nil {
			return
		}
		if k == 0 || k >= ib.DefaultPKeyLimited {
			t.Errorf("%q is about P_Key %v", data, k)
		}
		if o.GUIDs != nil {
			guids, err := parseGUIDs(*o.GUIDs)
			for _, g := range guids {
				if err == nil && !g.Valid() {
					t.Errorf("%q names GUID %v", data, g)
				}
			}
		}
	})
}

// FuzzCredential: no header makes a token of nothing.
func FuzzCredential(f *testing.F) {
	f.Add("Basic YTpi")
	f.Add("Basic pcop_x")
	f.Add("Bearer x")
	f.Fuzz(func(t *testing.T, header string) {
		user, token := parse(header)
		if user != "" && token == "" || len(token) > len(header) {
			t.Errorf("%q is user %q, token %q", header, user, token)
		}
	})
}
