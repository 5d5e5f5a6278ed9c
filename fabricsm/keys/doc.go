// Package keys decides which management keys the devices of a fabric have: how
// keys are made (Source), which ones a device may hold now (Ring, Book), and
// when they change (Rotator). It sends nothing, saves nothing and knows no
// clock: it is asked, and says what to do. It holds no attribute layouts either;
// where a key is in a MAD is package mad's to know.
//
// # What a subnet manager asks
//
// At start, it opens a Book on the records that were saved. For each device and
// each kind of key that it manages:
//
//   - Which key goes into the header? Ring.Now gives it, if it is known. While it
//     is not, send nothing of that class but what Next says.
//   - What next? Ring.Next, with the place where the device is seen, and whether
//     the topology wants it there. If Step.Save is set, save Ring.Record with
//     what else is saved before this output is sent, and call Saved.
//   - After the Set of a Program was answered or refused: Sent; if nothing came
//     back: Lost. The Get that follows says which key the device is on, not the
//     answer to the Set.
//   - After the Get of an Ask: Answered with the key that the attribute showed
//     (Hidden if it is 0 with protection bits set), or Silent if all tries of the
//     transport failed. Then Next again.
//   - A port came up, or a lease ran out: Again. It asks under the current key:
//     whoever holds none answers that, and shows 0. So nobody has to guess at 0.
//   - The device was verified elsewhere: Book.Move. It is gone for good: Retire.
//
// # What is withheld
//
// A key leaves only in a MAD to the device with that GUID, at the place of its
// record, when the caller says that the place is verified; anything else is
// Withhold. At most two keys are ever tried on a device, both its own. Behind a
// link where nothing is known, Book.At names the devices whose keys may be tried
// there. Whatever answers there learns a key of the device that was there before:
// if it turns out to be another one, give that device a new key.
//
// # Why a crash loses no device
//
// Plan puts the new key beside the current one, and nothing is sent until both
// are saved. After a crash the record has both, and two Gets at most tell which
// the device is on. Only a Get that shows the new key makes it the current one;
// the old one stays as Previous, because devices with dual keys still accept it,
// until Commit. A device without dual keys drops it at once, which the same steps
// bear. Plan refuses to begin another change before.
//
// A store that goes on when it cannot write, as one for LIDs may, must fail for
// records: a key that is on a device and nowhere else is lost.
//
// # Rotation
//
// Rotator.Next names devices whose key is to change: for each, Plan a key of the
// Target's epoch from the Source (unless one is pending, which then goes on), go
// through its steps until Settled, Refusing or Stranded, and tell Done. Its
// Cycles are saved like records, and before them. For N2NNodeKey, tell Done only
// after the neighbours have the switch's new key; devices come one at a time.
package keys
