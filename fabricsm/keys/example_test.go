package keys_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// A device gets its first key. The answer to the Set is lost, which makes no
// difference: the Get decides.
func Example() {
	var (
		guid   = ib.GUID(0x0002c90300a1b2c3)
		place  = ib.Place{Switch: 0x0002c90300ffee00, Port: 7}
		source = keys.Random{Reader: rand.NewChaCha8([32]byte{1})}
		device keys.Key // key on the device
	)
	book, err := keys.NewBook(nil) // no records were saved
	if err != nil {
		fmt.Println(err)
		return
	}
	ring := book.Open(keys.MKey, guid, place)
	key, err := source.Make(keys.MKey, guid, ring.NextEpoch(), time.Unix(0, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ring.Plan(key); err != nil {
		fmt.Println(err)
		return
	}
	for !ring.Settled() {
		step := ring.Next(place, true)
		fmt.Printf("%v, save first: %v\n", step.Do, step.Save)
		if step.Save {
			ring.Saved() // ring.Record() is durable
		}
		switch step.Do {
		case keys.Ask:
			fmt.Println("  found", ring.Answered(keys.Seen{Key: device}))
		case keys.Program:
			device = step.New
			ring.Sent(true)
		case keys.Nothing:
		default:
			return
		}
	}
	now, known := ring.Now(place, true)
	fmt.Println("for headers:", now, known, now == device)
	_, known = ring.Now(ib.Place{Switch: 0x0002c90300ffee00, Port: 8}, true)
	fmt.Println("at another place:", known)
	// Output:
	// ask, save first: true
	//   found no key
	// program, save first: false
	// ask, save first: false
	//   found new key
	// nothing, save first: true
	// for headers: [secret] true true
	// at another place: false
}
