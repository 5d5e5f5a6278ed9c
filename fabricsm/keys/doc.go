// Package keys decides which management keys the devices of a fabric have: how keys are made (Source), which ones a device
// may hold now (Ring, Book), and when they change (Rotator). It sends nothing, saves nothing and has no clock: the caller
// asks it for the next step. It has no attribute layouts either; package mad has the position of a key in a MAD.
//
// # Use by a subnet manager
//
// At start, it opens a Book on the records that were saved. For each device and each kind of key that it manages:
//
//   - Which key goes into the header? Ring.Now returns it, if it is known. While it
//     is not, send no MAD of that class except those of Next.
//   - What is next? Ring.Next, with the place where the device is seen, and whether
//     the topology has it there. If Step.Save is set, save Ring.Record together
//     with the other data to be saved before this output is sent, and call Saved.
//   - After the Set of a Program was answered or refused: Sent; if there was no
//     answer: Lost. The Get that follows shows which key the device is on, not the
//     answer to the Set.
//   - After the Get of an Ask: Answered with the key that the attribute showed
//     (Hidden if it is 0 with protection bits set), or Silent if all tries of the
//     transport failed. Then Next again.
//   - A port came up, or a lease ran out: Again. It asks under the current key: a
//     device that holds no key answers that, and shows 0. So no caller has to guess
//     that the key is 0.
//   - The device was verified elsewhere: Book.Move. It is gone permanently: Retire.
//
// # Withheld keys
//
// A key leaves only in a MAD to the device with that GUID, at the place of its record, when the caller says that the place
// is verified; otherwise the step is Withhold. At most two keys are ever tried on a device, both its own. Behind a link
// where nothing is known, Book.At names the devices whose keys may be tried there. A device that answers there learns a key
// of the device that was there before: if it is another one, assign that device a new key.
//
// # Why a crash loses no device
//
// Plan puts the new key beside the current one, and nothing is sent until both are saved. After a crash the record has
// both, and two Gets at most show which key the device is on. Only a Get that shows the new key makes it the current one.
// The old one stays as Previous until Commit, because devices with dual keys still accept it. A device without dual keys
// drops it at once, and the same steps work for it. Plan rejects another change before the end of this one.
//
// A store for records must fail when it cannot write; one for LIDs may go on. A key that is on a device and nowhere else is
// lost.
//
// # Rotation
//
// Rotator.Next names devices whose key is due to change. For each, Plan a key of the Target's epoch from the Source (unless
// one is pending, which then goes on), go through its steps until Settled, Refusing or Stranded, and call Done. Its Cycles
// are saved like records, and before them. For N2NNodeKey, call Done only after the neighbours have the switch's new key;
// devices come one at a time.
package keys
