package drills

import (
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// grantSeen grants a P_Key at the ports of a host that are seen, as a service does that looks at one port at a time.
func grantSeen(v *site, host string, key ib.PKey, rails []string) {
	_, err := v.store.Update(v.ctx(), func(tx *store.Tx) error {
		for _, rail := range rails {
			g := v.GrantOf(rail, 1, key)
			k := records.Key{PKey: g.PKey.Base(), GUID: g.GUID, Place: g.Place}
			if err := records.Grants().Put(tx, k.String(), records.Grant{Host: host, Since: v.clock()}); err != nil {
				return err
			}
		}
		return nil
	})
	v.scene.Must(err)
}

// believe records that the P_Keys of a host are gone, as a Subnet Manager that reads nothing back.
func believe(v *site, host string) {
	_, err := v.store.Update(v.ctx(), func(tx *store.Tx) error {
		list, _, err := records.Grants().List(v.ctx(), tx, "")
		if err != nil {
			return err
		}
		for _, g := range list {
			if g.Value.Host != host || !g.Value.Withdrawn {
				continue
			}
			found := records.Membership{State: records.Removed, HCAProven: true, Revision: g.Modified, Time: v.clock()}
			if err := records.Memberships().Put(tx, g.Key, found); err != nil {
				return err
			}
		}
		return nil
	})
	v.scene.Must(err)
}
