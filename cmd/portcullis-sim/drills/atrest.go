package drills

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/threats"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

// readKeys is T46.
func readKeys(s *drill.Scene) {
	v := newSite(s, options{
		fabric: drill.SiteOptions{SM: sm.Config{MKey: mkeys.Config{
			Rotation: keys.RotationConfig{Period: time.Hour, Grace: 5 * time.Minute, Window: 4},
		}}},
		credentials: []account{{name: "ops"}},
	})
	acme := v.cluster("ops", "acme", "h1", "h5")
	v.VictimOf("h1", "h5", acme)
	random := rand.NewChaCha8([32]byte{46, byte(s.Seed())})
	root := newRoot(s, "drill", random)
	v.keep(root, random)
	v.Run(90 * time.Minute)
	s.Must(v.Settle(time.Minute))
	v.sync()
	v.keep(root, random)

	s.Tried("a thief takes the store with all that it ever held, the log, an escrow kit, and all that the API answers; the thief looks for the keys that devices have or had, in every form, and tries what is found")
	v.mark()
	places := v.sinks(root)
	for _, secret := range v.secrets() {
		for _, name := range slices.Sorted(maps.Keys(places)) {
			if form := leaked(places[name], secret); form != "" {
				s.Check(false, "a key is in %s, %s", name, form)
				threats.TryKeys(v.Site, "h7", v.live())
				return
			}
		}
	}
	if s.Check(len(v.everyKey()) > 20, "%d keys were looked for, so nothing is proven", len(v.everyKey())) {
		s.Stopped("none of %d keys is in any of %d places: they are sealed before they are stored, and nothing prints one", len(v.everyKey()), len(places))
	}
	v.wrongRoot(random)
	v.audit("ops", "fabric.keys.sealed", "")
	v.restored(root, random)
}

// newRoot draws what opens a store.
func newRoot(s *drill.Scene, name string, random *rand.ChaCha8) vault.Root {
	secret := make([]byte, vault.SecretSize)
	_, _ = random.Read(secret) // never fails
	root, err := vault.NewRoot(name, secret)
	s.Must(err)
	return root
}

// keep saves the facts of the Subnet Manager as the service does: sealed, in the
// store.
func (v *site) keep(root vault.Root, random *rand.ChaCha8) {
	to, err := keystore.Open(v.turn.Store(), root, random)
	v.scene.Must(err)
	if v.scene.Off(SealedStore) {
		v.scene.Must(bare{v}.Save(v.Facts()))
		return
	}
	v.scene.Must(to.SetMaster(v.scene.Master()))
	v.scene.Must(to.Save(v.Facts()))
}

// bare is a store that keeps keys as they are.
type bare struct{ v *site }

// Save writes each key in hexadecimal.
func (b bare) Save(facts []sm.Fact) error {
	var out []sm.Fact
	for _, f := range facts {
		if f.Key != nil {
			f.Sealed, f.Key = fmt.Sprintf("%016x", f.Key.Current.Key.Reveal()), nil
		}
		out = append(out, f)
	}
	return b.v.turn.Store().Save(out)
}

// everyKey lists the M_Keys that devices have, and had.
func (v *site) everyKey() (out []keys.Key) {
	seen := make(map[keys.Key]bool)
	for _, f := range v.Facts() {
		if f.Key == nil {
			continue
		}
		for _, h := range f.Key.Try() {
			if !seen[h.Key] {
				seen[h.Key] = true
				out = append(out, h.Key)
			}
		}
	}
	return out
}

// secrets are those keys, and the secrets they are derived from in words of eight bytes.
func (v *site) secrets() (out []uint64) {
	for _, key := range v.everyKey() {
		out = append(out, key.Reveal())
	}
	for word := range slices.Chunk(v.scene.Master().Reveal(), 8) {
		out = append(out, binary.BigEndian.Uint64(word))
	}
	return out
}

// live are the M_Keys that devices have, of those that are in the store as they are.
func (v *site) live() (out []ib.MKey) {
	text := v.kept.Dump()
	for _, key := range v.everyKey() {
		if leaked(text, key.Reveal()) != "" {
			out = append(out, key.M())
		}
	}
	return out
}

// sinks are all places where an attacker may look.
func (v *site) sinks(root vault.Root) map[string][]byte {
	s := v.scene
	for _, path := range []string{"/v1/fabric", "/v1/sm", "/v1/fabric/keys", "/v1/fabric/keys/devices", "/v1/hosts", "/metrics", "/metrics/fabric"} {
		s.Check(v.call("ops", "GET", path, "").good(), "GET %s is not answered", path)
	}
	taken := v.call("ops", "POST", "/v1/fabric/keys/sealed", "")
	s.Check(taken.good(), "the sealed keys are not given out: %s", &taken.body)
	places := map[string][]byte{
		"the store": v.kept.Dump(), "the log and the answers of the API": []byte(v.said.String()),
		"the view": fmt.Appendf(nil, "%+v", v.View()),
	}
	var events bytes.Buffer
	for _, h := range v.Events() {
		fmt.Fprintf(&events, "%v %+v\n", h.Event, h.Event)
	}
	places["the events"] = events.Bytes()
	if !s.Off(SealedStore) {
		places["the escrow kit"] = v.kit(root, taken)
	}
	return places
}

// kit is an escrow kit of the keys that the service hands out.
func (v *site) kit(root vault.Root, taken *answer) []byte {
	s := v.scene
	var stored v1.SealedKeys
	s.Must(json.Unmarshal(taken.body.Bytes(), &stored))
	facts, err := factfile.Read("sealed keys", strings.NewReader(strings.Join(stored.Facts, "\n")+"\n"))
	s.Must(err)
	c, err := keystore.Read(facts, root)
	s.Must(err)
	s.Check(len(c.Records) > 0, "the sealed keys have no record, so nothing is proven")
	return escrowOf(s, &escrow.Contents{Fabric: c.Vault, Made: v.clock(), Master: c.Master, Check: c.Check, Records: c.Records, Cycles: c.Cycles})
}

// escrowOf makes an escrow kit for a new identity.
func escrowOf(s *drill.Scene, c *escrow.Contents) []byte {
	id, err := age.GenerateX25519Identity()
	s.Must(err)
	var kit bytes.Buffer
	s.Must(escrow.Create(&kit, c, id.Recipient()))
	return kit.Bytes()
}

// wrongRoot demands that the stolen store does not open under another root.
func (v *site) wrongRoot(random *rand.ChaCha8) {
	s := v.scene
	_, err := keystore.Open(v.turn.Store(), newRoot(s, "thief", random), random)
	if s.Check(err != nil, "the store opens under a root that is not its own") {
		s.Stopped("under another root the store says: %v", err)
	}
}

// restored demands that the Subnet Manager goes on with what is stored: the sealed records are the keys.
func (v *site) restored(root vault.Root, random *rand.ChaCha8) {
	s := v.scene
	kept, err := keystore.Open(v.turn.Store(), root, random)
	s.Must(err)
	facts, err := kept.Load()
	s.Must(err)
	in := v.Intent()
	v.Crash()
	v.Restore(facts)
	v.Start()
	v.Want(in)
	if s.Check(v.Settle(time.Minute) == nil, "the subnet manager does not settle with what was stored") {
		s.Stopped("with its own root the store yields every key: the subnet manager went on with it")
	}
}

// leaked says in which form a key is in a text, "" if it is not.
func leaked(text []byte, key uint64) string {
	be := binary.BigEndian.AppendUint64(nil, key)
	le := binary.LittleEndian.AppendUint64(nil, key)
	lower := bytes.ToLower(text)
	for _, b := range [][]byte{be, le} {
		spaced := make([]string, len(b))
		for i, x := range b {
			spaced[i] = fmt.Sprintf("%02x", x)
		}
		switch {
		case bytes.Contains(text, b):
			return "as bytes"
		case bytes.Contains(lower, []byte(hex.EncodeToString(b))):
			return "in hexadecimal"
		case bytes.Contains(lower, []byte(strings.Join(spaced, " "))), bytes.Contains(lower, []byte(strings.Join(spaced, ":"))):
			return "in hexadecimal bytes"
		}
		for shift := range 3 { // the digits that depend on the key alone
			in64 := base64.StdEncoding.EncodeToString(append(make([]byte, shift), append(bytes.Clone(b), 0)...))
			if bytes.Contains(text, []byte(in64[(shift*8+5)/6:(shift+8)*8/6])) {
				return "in base64"
			}
		}
	}
	if bytes.Contains(text, []byte(strconv.FormatUint(key, 10))) || bytes.Contains(text, []byte(strconv.FormatInt(int64(key), 10))) {
		return "in decimal"
	}
	if bytes.Contains(lower, []byte(strconv.FormatUint(key, 16))) {
		return "in hexadecimal"
	}
	return ""
}
