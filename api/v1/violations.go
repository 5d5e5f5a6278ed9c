package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// FabricViolation counts what was reported of one kind, from one source, by one device, with the same detail. Keys are not
// in it, except for P_Keys.
type FabricViolation struct {
	ID            uint64    `json:"id" doc:"grows; of this run of the subnet manager"`
	Kind          string    `json:"kind" doc:"m-key, p-key, q-key, cc-key, vs-key, n2n-key, n2n-config, sm-key, forged-trap, stray-answer, trap-storm or host-wrote; with all also link-state, link-integrity, buffer-overrun, flow-control, local-change, system-image, own-m-key or other; and of requests to subnet administration sa-wrong-key, sa-spoofed-sgid, sa-not-allowed, sa-proxy and others; mad-flood of packets of other classes"`
	Trap          uint16    `json:"trap,omitzero" doc:"number of the trap that reported it"`
	Verdict       string    `json:"verdict" doc:"claimed: a trap says so, and any host may send traps; confirmed: the device it names has counted it, caused by any host; refuted: that device has counted nothing"`
	At            string    `json:"at,omitempty" doc:"where it came from, by name: leaf1/7, or leaf1 for the switch itself"`
	Place         ib.Place  `json:"place,omitzero" doc:"switch port where it came from; port 0: the switch itself"`
	GUID          ib.GUID   `json:"guid,omitzero" doc:"end port there"`
	LID           ib.LID    `json:"lid,omitzero" doc:"source, as the last report says"`
	By            string    `json:"by,omitempty" enum:"lid,way,port" doc:"what names the place. lid: the source LID of the packet, which its sender's adapter stamped. way: the return path of the SMP, walked back; its sender may have made it up. port: the switch port that stopped it, as the trap says, or over which the subnet manager asked. None of the first two proves who it was"`
	NamedLID      ib.LID    `json:"named_lid,omitzero" doc:"that the sender itself wrote into the SMP as its own, where it is not that of the accused; it accuses no port"`
	VictimGUID    ib.GUID   `json:"victim_guid,omitzero" doc:"port whose LID or GUID an adapter was given: host-wrote"`
	Host          string    `json:"host,omitempty" doc:"inventory's name of what is cabled there"`
	Tenant        string    `json:"tenant,omitempty" doc:"whose host that is"`
	Reporter      ib.GUID   `json:"reporter_guid,omitzero" doc:"end port of the device that reports it"`
	ReporterAt    string    `json:"reporter_at,omitempty" doc:"where that is, by name"`
	ReporterPlace ib.Place  `json:"reporter_place,omitzero"`
	PKey          ib.PKey   `json:"p_key,omitzero" doc:"that the packet had"`
	Detail        string    `json:"detail,omitempty" doc:"what was tried: Set PortInfo"`
	Count         uint64    `json:"count" doc:"exact number of reports"`
	Repeats       uint64    `json:"repeats,omitempty" doc:"reports that were sent once more, not in count"`
	Counted       uint64    `json:"counted,omitempty" doc:"violations that the reporting device has counted, where that is known to be of this row alone; devices report a sample"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	Others        bool      `json:"others,omitempty" doc:"this row stands for more than there is room for: all others of its kind and place, or of its kind"`
	Text          string    `json:"text"`
}

// ViolationQuery says which violations are asked for. Empty fields ask for all.
type ViolationQuery struct {
	Kind    string `query:"kind" maxLength:"32" doc:"of this kind only"`
	Verdict string `query:"verdict" enum:"claimed,confirmed,refuted" doc:"with this verdict only"`
	Host    string `query:"host" maxLength:"128" doc:"from this host of the inventory only"`
	Tenant  string `query:"tenant" maxLength:"128" doc:"from hosts of this tenant only"`
	All     bool   `query:"all" doc:"traps that report no violation, too"`
	PageQuery
}
