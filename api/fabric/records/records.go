// Package records defines the records by which the api role and the sm role of the service communicate. They are records in
// the store, and nothing else, so that the two can run in different processes.
//
// The api role (package admission) writes grants. The sm role (package fabric) turns them into intent for the subnet
// manager and writes back what the fabric shows: where each port is seen, which memberships were read back, the nodes, and
// the state of the subnet manager itself.
//
// A grant is withdrawn by marking it, not by deleting it: it stays until the P_Key was read back as absent from switch port
// and HCA. The records below a P_Key are thus exactly the places where it may still be.
//
// A membership counts only if its Revision is not smaller than the revision of the grant's last change: an earlier
// read-back says nothing.
package records

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Key names one port's membership in one partition at one place.
type Key struct {
	PKey  ib.PKey // membership bit clear
	GUID  ib.GUID // port GUID
	Place ib.Place
}

// String returns the store key: "0x0012/0x...guid/0x...switch-7".
func (k Key) String() string {
	return PKeyPrefix(k.PKey) + k.GUID.String() + "/" + k.Place.Switch.String() + "-" + strconv.Itoa(int(k.Place.Port))
}

// PKeyPrefix is the common prefix of the keys of one P_Key.
func PKeyPrefix(k ib.PKey) string { return k.Base().String() + "/" }

// ParseKey reads the result of String.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Key{}, fmt.Errorf("membership key %q: want P_KEY/GUID/SWITCH-PORT", s)
	}
	var k Key
	if err := k.PKey.UnmarshalText([]byte(parts[0])); err != nil {
		return Key{}, fmt.Errorf("membership key %q: %w", s, err)
	}
	if err := k.GUID.UnmarshalText([]byte(parts[1])); err != nil {
		return Key{}, fmt.Errorf("membership key %q: %w", s, err)
	}
	if err := k.Place.UnmarshalText([]byte(strings.Replace(parts[2], "-", "/", 1))); err != nil {
		return Key{}, fmt.Errorf("membership key %q: %w", s, err)
	}
	return k, nil
}

// Grant says whether a membership is wanted or must be proven absent.
type Grant struct {
	Host      string    `json:"host"`
	Cluster   string    `json:"cluster"`
	Tenant    string    `json:"tenant,omitempty"`
	Limited   bool      `json:"limited,omitempty"` // a limited member: of a partition that tenants share
	Withdrawn bool      `json:"withdrawn,omitempty"`
	Adopted   string    `json:"adopted,omitempty"` // the adoption that it is kept by: nothing is proven of the host, and no host or cluster is named
	Epoch     int64     `json:"epoch,omitempty"`   // of the assignment it was granted for; 0: granted by an earlier release
	Since     time.Time `json:"since"`             // granted, or withdrawn
}

// MembershipState is what the subnet manager last found about a membership.
type MembershipState string

// States of a membership. The empty state means that nothing is known.
const (
	Applied MembershipState = "applied" // read back from switch port and HCA, and enforced
	Removed MembershipState = "removed" // read back as absent from the switch port
	Refused MembershipState = "refused" // wanted, but cannot be; Reason says why
)

// Membership is what was read back about a grant.
type Membership struct {
	State     MembershipState `json:"state"`
	HCAProven bool            `json:"hca_proven,omitempty"` // Removed: absent from the HCA too
	Reason    string          `json:"reason,omitempty"`
	Revision  int64           `json:"revision"` // store revision of the grants this answers
	Time      time.Time       `json:"time"`
	Ordered   time.Time       `json:"ordered,omitzero"` // when the sm role learned of the grant as it was then; zero: not recorded
}

// Port is where the port with a GUID of the inventory is seen.
type Port struct {
	NodeGUID  ib.GUID   `json:"node_guid,omitzero"`
	Place     ib.Place  `json:"place,omitzero"` // zero: not seen
	LID       ib.LID    `json:"lid,omitzero"`
	State     string    `json:"state,omitempty"`
	HCACap    int       `json:"hca_cap,omitempty"`    // P_Keys the HCA port can hold; 0: not known
	SwitchCap int       `json:"switch_cap,omitempty"` // P_Keys the switch port can enforce; 0: not known
	Shut      string    `json:"shut,omitempty"`       // of a port that is not seen: that the manager shut the switch port where it is cabled, why, and what to do
	Time      time.Time `json:"time"`                 // of the last change but that of Shut
}

// Master is the key of the one record in SMs.
const Master = "master"

// Grants holds what admission wants, by Key. Written by the api role.
func Grants() store.Collection[Grant] { return store.NewCollection[Grant]("grants", 1) }

// Memberships holds what was read back, by Key. Written by the sm role.
func Memberships() store.Collection[Membership] {
	return store.NewCollection[Membership]("fabric/memberships", 1)
}

// Ports holds where inventory's ports are seen, by port GUID. Written by the
// sm role.
func Ports() store.Collection[Port] { return store.NewCollection[Port]("fabric/ports", 1) }

// Nodes holds the fabric's nodes, by node GUID, without the names of their
// hosts. Written by the sm role.
func Nodes() store.Collection[v1.Node] { return store.NewCollection[v1.Node]("fabric/nodes", 1) }

// SMs holds the state of the subnet manager under Master. Written by the sm
// role on change and as a sign of life.
func SMs() store.Collection[v1.SM] { return store.NewCollection[v1.SM]("fabric/sm", 1) }

// Sights holds, under Master, whether the subnet manager sees the fabric that it knows. Written by the sm role.
func Sights() store.Collection[v1.Sight] { return store.NewCollection[v1.Sight]("fabric/sight", 1) }

// Accepted says that an operator holds what is out of sight for gone.
type Accepted struct {
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// AcceptedSights holds the last Accepted under Master. Written by the api role.
func AcceptedSights() store.Collection[Accepted] {
	return store.NewCollection[Accepted]("fabric/sight-accepted", 1)
}
