package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// FabricKeys is how the keys of devices stand. No key is in it.
type FabricKeys struct {
	Managed   bool           `json:"managed" doc:"devices get M_Keys from this subnet manager"`
	Releasing bool           `json:"releasing" doc:"keys are given back, and none is given out until it is resumed"`
	Released  bool           `json:"released" doc:"they were given back, as far as devices could be asked"`
	Places    string         `json:"places,omitempty" doc:"what counts as the place of a device: declared or seen"`
	Devices   map[string]int `json:"devices" doc:"end ports by how they stand to their key: none, held, changing, withheld, stranded, refused, foreign or returned"`
	Old       map[string]int `json:"old" doc:"end ports whose key is older than it should be, by why"`
	Oldest    float64        `json:"oldest_seconds" doc:"age of the oldest key that a device holds"`
	Median    float64        `json:"median_seconds" doc:"age that half of the keys are below"`
	Rotation  KeyRotation    `json:"rotation"`
	Classes   []ClassKeys    `json:"classes,omitempty" doc:"keys of management classes, but for those that are ignored"`
	Kept      int            `json:"class_keys_kept,omitempty" doc:"when released: keys of management classes that devices still hold"`
}

// ClassKeys is how the keys of a management class stand.
type ClassKeys struct {
	Kind    string  `json:"kind" doc:"cc_key, vs_key or n2n_key"`
	Enable  string  `json:"enable" doc:"enable or disable"`
	Settled int     `json:"settled" doc:"end ports that are as they should be"`
	Working int     `json:"working" doc:"end ports at which something is under way"`
	Absent  int     `json:"absent" doc:"end ports without the class, without keys in it, or silent"`
	Failing int     `json:"failing" doc:"end ports that cannot be brought to their key now, as those whose place is not verified"`
	Single  int     `json:"single" doc:"settled end ports that hold one key at a time, which is not changed"`
	Old     int     `json:"old" doc:"keys that are older than they should be, as of the end of the latest rotation"`
	Oldest  float64 `json:"oldest_seconds" doc:"age of the oldest of these"`
}

// KeyRotation is the change of keys from time to time.
type KeyRotation struct {
	Period  float64   `json:"period_seconds" doc:"from one cycle to the next; 0: keys do not change"`
	Epoch   uint32    `json:"epoch" doc:"of the latest cycle; 0: there was none"`
	Began   time.Time `json:"began,omitzero"`
	Changed time.Time `json:"changed,omitzero" doc:"all devices were tried"`
	Ended   time.Time `json:"ended,omitzero" doc:"the keys before were dropped"`
	Turning int       `json:"turning" doc:"devices whose key is being changed"`
}

// FabricKey is the M_Key of an end port, except for the key itself.
type FabricKey struct {
	GUID    ib.GUID   `json:"guid" doc:"port GUID; of a switch that of port 0"`
	At      string    `json:"at" doc:"by name: leaf1, or host1/1"`
	Kind    string    `json:"kind" doc:"m_key"`
	Place   ib.Place  `json:"place,omitzero" doc:"switch port that the key is bound to; none: a switch"`
	State   string    `json:"state" doc:"none, held, changing, withheld, stranded, refused, foreign or returned"`
	Epoch   uint32    `json:"epoch" doc:"0: taken over from another subnet manager, or none"`
	Origin  string    `json:"origin,omitempty" doc:"derived, random or imported"`
	Since   time.Time `json:"since,omitzero" doc:"when the key was made"`
	Age     float64   `json:"age_seconds"`
	Old     string    `json:"old,omitempty" doc:"why the key is older than it should be"`
	Dual    bool      `json:"dual" doc:"the device accepts two keys for a while, and so gets others from time to time"`
	Exposed bool      `json:"exposed,omitempty" doc:"the key was shown to another device, and changes"`
	Lent    time.Time `json:"lent_until,omitzero" doc:"a tool has the key until then; it changes afterwards"`
}

// KeyRelease asks for all keys to be given back, or for that to end.
type KeyRelease struct {
	Resume bool `json:"resume,omitempty" doc:"assign keys again"`
}

// KeyMove says that an operator has verified a device at another place.
type KeyMove struct {
	GUID ib.GUID `json:"guid" doc:"port GUID of a CA or router"`
	To   string  `json:"to,omitempty" maxLength:"160" doc:"switch port as SWITCH/PORT; none: where the device is seen now"`
}

// SealedKeys is what the store of the service holds about keys: sealed, so that
// it says nothing without the root.
type SealedKeys struct {
	Facts []string `json:"facts" doc:"lines of a file of facts"`
}
