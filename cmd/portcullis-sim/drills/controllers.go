package drills

import (
	"fmt"
	"strings"

	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
)

// sharedPool is T116: GUIDs for virtual functions are those of one port each, by the inventory, and come free when their host
// leaves.
func sharedPool(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	const alias = ib.GUID(0x0002c903aa000001)

	s.Tried("one controller assigns the alias %v to h3, and another one assigns it to h4; then that of h4 is the port GUID of h1, and one alias twice", alias)
	v.mark()
	s.Must(v.importAliases("h3", alias))
	v.claimed("h4", "h3", alias)
	v.claimed("h4", "h1", v.GUID("h1", 1))
	twice := v.importAliases("h4", alias+1, alias+1)
	s.Check(twice != nil, "one alias is there twice, and the inventory takes it")
	s.Check(len(v.aliasesOf("h4")) == 0, "h4 has the aliases %v", v.aliasesOf("h4"))

	s.Tried("h3 leaves for ever, and its alias goes to another host: no GUID leaks")
	v.must("ann", "DELETE", "/v1/hosts/h3", `{"reason":"it was sold"}`)
	err := v.importAliases("h4", alias)
	if s.Check(err == nil && len(v.aliasesOf("h4")) == 1, "the alias of a host that left is lost: %v", err) {
		s.Stopped("the inventory is the one authority for aliases: each GUID has one owner in it, by name, until that leaves")
	}
	v.sync()
}

// importAliases imports a host of the inventory again, with aliases at its port.
func (v *site) importAliases(host string, aliases ...ib.GUID) error {
	words := make([]string, len(aliases))
	for i, a := range aliases {
		words[i] = a.String()
	}
	text := fmt.Sprintf("hosts:\n- id: %s\n  hcas:\n  - node_guid: %v\n    ports:\n    - {port: 1, guid: %v, cable: %v, aliases: [%s]}\n",
		host, v.List.Find(host).GUID, v.GUID(host, 1), v.Place(host, 1), strings.Join(words, ", "))
	_, err := v.admission.Inventory().ImportInventory(v.ctx(), "ann", []inventory.File{{Name: host + ".yaml", Data: []byte(text)}}, v1.RepairTicket{}, false)
	return err
}

// claimed demands that the inventory refuses an alias for a host, because another one has that GUID.
func (v *site) claimed(host, owner string, guid ib.GUID) {
	err := v.importAliases(host, guid)
	problems := ""
	if err != nil {
		problems = fmt.Sprintf("%+v %v", problemsOf(err), err)
	}
	v.scene.Check(err != nil, "%s gets the alias %v, which %s has", host, guid, owner)
	v.Counted(strings.Contains(problems, "host "+owner), "the import names host %s, which has %v: %s", owner, guid, problems)
}

func (v *site) aliasesOf(host string) []ib.GUID {
	rec, err := inventory.Hosts().Get(v.ctx(), v.store, host)
	v.scene.Must(err)
	return rec.Value.HCAs[0].Ports[0].Aliases
}

// foreignCleanUp is T118: a controller deletes all partitions that it does not know.
func foreignCleanUp(s *drill.Scene) {
	east, west := []string{"0x0100-0x01ff"}, []string{"0x0200-0x02ff"}
	if s.Off(PKeyScopes) {
		east = []string{"0x0001-0x7ffe"}
	}
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "east", pkeys: east}, {name: "west", pkeys: west}}, api: withUFM})
	v.must("ops", "POST", "/v1/tenants", `{"name":"of-east","p_keys":["0x0100-0x01ff"]}`)
	v.must("ops", "POST", "/v1/tenants", `{"name":"of-west","p_keys":["0x0200-0x02ff"]}`)
	v.must("west", "POST", "/v1/clusters", `{"name":"train","tenant":"of-west"}`)
	v.admit("west", "train", "h2", "h6")
	train := v.pkeyOf("train")

	s.Tried("controller east finds the partition %v, which it did not make, and cleans up: it releases the hosts, deletes the cluster, and does the same at the surface of UFM", train.Base())
	v.mark()
	for _, h := range []string{"h2", "h6"} {
		v.refused("p_key_out_of_scope", "east", "POST", "/v1/hosts/"+h+"/release", "")
	}
	v.refused("p_key_out_of_scope", "east", "DELETE", "/v1/clusters/train", "")
	guid := fmt.Sprintf("%016x", uint64(v.GUID("h2", 1)))
	for _, a := range []*answer{
		v.call("east", "POST", "/ufmRest/actions/remove_guids_from_pkey", fmt.Sprintf(`{"pkey":"%v","guids":[%q]}`, train.Base(), guid)),
		v.call("east", "PUT", "/ufmRest/resources/pkeys", fmt.Sprintf(`{"pkey":"%v","guids":[]}`, train.Base())),
		v.call("east", "DELETE", fmt.Sprintf("/ufmRest/resources/pkeys/%v", train.Base()), ""),
	} {
		s.Check(!a.good(), "a clean-up at the surface of UFM is answered with %d %s", a.status, strings.TrimSpace(a.body.String()))
	}
	shown := v.call("east", "GET", "/ufmRest/resources/pkeys?guids_data=true", "").body.String()
	s.Check(!strings.Contains(shown, guid), "east is shown the members of a partition that is not its own: %s", shown)
	v.audit("east", "cluster.delete", "p_key_out_of_scope")
	v.sync()
	if s.Check(v.pkeyOf("train") == train && v.delivered("h2", "h6", train), "hosts of west do not reach each other after a clean-up of east") {
		s.Stopped("who made a partition owns it, by the P_Keys of its credential: another one is refused, and nothing is removed")
	}
}
