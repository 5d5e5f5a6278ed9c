/*
 * Admission of one host, leadership of two instances, and the change of the M_Key
 * of the switch that the host is cabled to, in one state space. README.md says what each
 * part stands for in the service, and what is left out.
 *
 * Every atomic block is one transaction of the store, one packet, or one look at
 * a clock. Between two of them any other actor may do anything.
 */

#ifndef EPOCHS
#define EPOCHS 2   /* assignments of the host */
#endif
#ifndef TERMS
#define TERMS 3    /* terms of leaders: two takeovers */
#endif
#ifndef ORDERS
#define ORDERS 4   /* commands of the operator */
#endif
#ifndef REPEATS
#define REPEATS 1  /* commands that come late, twice or out of order */
#endif
#ifndef CLAIMS
#define CLAIMS 1   /* GUIDs that another host claims too */
#endif
#ifndef LOSSES
#define LOSSES 1   /* SMPs, or answers to them, that are lost */
#endif

#include "lifecycle.pml" /* the steps that the rules in api/lifecycle allow */

mtype:ledger = { none, given, withdrawn };      /* the grant, as the ledger has it */
mtype:found  = { unread, applied, absent };     /* what was read back since its last change */
mtype:packet = { idle, setKey, setPKey, shutPort, learn, record };
mtype:belief = { unknown, onCurrent, onPrevious };

/* The store. */
byte epoch;                                     /* counts assignments */
bool assigned, window, admitted;
bool attested, lockProven, sealed;
bool held;                                      /* another host claims a GUID of it */
bool fenced;                                    /* its switch port is marked, to be shut */
mtype:ledger grant = none;
mtype:found found = unread;
byte grantEpoch;                                /* assignment that the grant is of */
byte revision;                                  /* of the grant's last change */
byte term = 1, holder = 1;                      /* of the lease; holder 0: none */
byte current = 1, pending, previous;            /* record of the M_Key: key N was made in term N */

/* The fabric. */
byte portKey;                                   /* P_Key in the switch port: N is the partition of assignment N */
bool portShut;
byte deviceKey = 1, devicePrevious;             /* M_Keys that the device accepts */

/* The host. */
bool adapterLocked;

/* Each instance's own opinion of its lease. */
byte trust = 2;                                 /* bit N: instance N holds its lease to be alive */

/* What the checks need, and no actor reads. */
byte ended;                                     /* bit N: assignment N was ended by a command */
byte attestedEpoch, sealedEpoch;                /* assignments that the proofs were made for */
byte losses;

#define TRUSTS(n) ((trust >> (n)) & 1)
#define ENDED(n) ((ended >> (n)) & 1)
#define ACCEPTS(key) ((key) != 0 && ((key) == deviceKey || (key) == devicePrevious))

/* Holds after each step. */
inline check() {
  /* covered: a port holds a P_Key only while the ledger has the grant of that assignment */
  assert(portKey == 0 || grant != none && grantEpoch == portKey);
  /* in-force: a grant is of the assignment in force, whose proofs are all there */
  assert(grant != given || assigned && grantEpoch == epoch && attested && lockProven && sealed);
  /* proven: the proofs were made for that assignment, and the adapter is locked */
  assert(grant != given || attestedEpoch == grantEpoch && sealedEpoch == grantEpoch && adapterLocked);
  /* removal-wins: an assignment that was ended has no grant again */
  assert(grant != given || !ENDED(grantEpoch));
  /* quarantined: a host that is fenced has no grant, and one that is held gets none */
  assert(grant != given || !fenced && (!held || admitted));
  /* no-late-admission: only an assigned host counts as admitted */
  assert(!admitted || assigned && !ENDED(epoch));
  /* key-known: the record has the key of the device */
  assert(deviceKey == current || deviceKey == pending || deviceKey == previous);
}

/* settle makes the ledger agree with the decision, in the transaction of what changed. */
inline settle() {
#ifdef FAULT_GRANT_BEFORE_PROOF
#define PROOFS attested
#else
#define PROOFS (attested && lockProven && sealed)
#endif
#ifdef FAULT_IGNORES_CLAIMS
#define HELD false
#else
#define HELD held
#endif
  if
  :: grant == withdrawn && found == absent -> grant = none; grantEpoch = 0; found = unread
  :: else
  fi;
  if
  :: (grant == none || grant == withdrawn && grantEpoch == epoch) && assigned && PROOFS && !HELD && !fenced ->
     grant = given; grantEpoch = epoch; found = unread; revision++
  :: grant == given && (!assigned || grantEpoch != epoch || !PROOFS || fenced || HELD && !admitted) ->
     grant = withdrawn; found = unread; revision++
  :: else
  fi;
  if
  :: grant == given && found == applied -> admitted = true
  :: else
  fi
}

#ifdef FAULT_NO_EPOCH
#define MEANT(e) true
#else
#define MEANT(e) ((e) == epoch)
#endif

/* Commands. Each names the assignment that its sender has read, and changes nothing when it is refused. */

inline forgetProofs() {
#ifdef FAULT_KEEPS_PROOFS
  skip
#else
  attested = false; lockProven = false; sealed = false;
  attestedEpoch = 0; sealedEpoch = 0
#endif
}

inline assign(e) {
  if
#ifdef FAULT_ASSIGN_WHILE_RELEASING
  :: MEANT(e) && epoch < EPOCHS && !assigned && !held ->
     if :: grant == withdrawn -> grant = none; grantEpoch = 0 :: else fi;
#else
  :: MEANT(e) && epoch < EPOCHS && !held && grant == none ->
#endif
     epoch++; assigned = true; window = true; admitted = false; forgetProofs()
  :: else
  fi
}

inline release(e) {
  if
  :: MEANT(e) && assigned ->
     assigned = false; window = false; admitted = false; ended = ended | (1 << epoch);
     forgetProofs()
  :: else
  fi
}

inline fence(e) {
  if
  :: MEANT(e) ->
     fenced = true;
     if
     :: assigned -> assigned = false; window = false; admitted = false; ended = ended | (1 << epoch); forgetProofs()
     :: else
     fi
  :: else
  fi
}

/* replace: the TPM or an adapter of the host is another one by now (RMA). */
inline replace(e) {
  if
  :: MEANT(e) && assigned && epoch < EPOCHS -> ended = ended | (1 << epoch); epoch++; window = false; forgetProofs()
  :: else
  fi
}

inline attest(e, locked) {
  if
  :: MEANT(e) && assigned && window && !admitted && locked ->
     attested = true; lockProven = true; sealed = false; attestedEpoch = e; sealedEpoch = 0
#ifdef FAULT_GRANT_BEFORE_PROOF
  :: MEANT(e) && assigned && window && !admitted && !locked -> attested = true; attestedEpoch = e
#endif
  :: else
  fi
}

inline seal(e) {
  if
  :: MEANT(e) && attested -> sealed = true; sealedEpoch = e
#ifdef FAULT_OVERWRITES
  :: e == epoch && !attested -> assigned = true; attested = true; lockProven = true; sealed = true; attestedEpoch = e; sealedEpoch = e
#endif
  :: else
  fi
}

/* readBack takes what the leader found in the switch port, if the grant did not change since the revision n. */
inline readBack(n) {
  if
#ifdef FAULT_OLD_READBACK
  :: grant != none -> found = (grant == given -> applied : absent)
#else
  :: grant != none && n == revision -> found = (grant == given -> applied : absent)
#endif
  :: else
  fi
}

/* Actors. Each command is sent to the store, which carries it out as one transaction. */

mtype:command = { toAssign, toRelease, toFence, toReplace, toResolve, toReopen, toAttest, toSeal, toClaim, toRecord };

chan store = [0] of { mtype:command, byte, bool };  /* command, assignment, whether the adapter was locked */
hidden byte e;       /* of the command that is carried out: no part of a state */
hidden byte locked;

/* The state of the host, as api/lifecycle has it (Of). */
#define AWAY (grant == withdrawn -> IN_RELEASING : (held -> IN_QUARANTINED : (fenced -> IN_FENCED : (epoch > 0 -> IN_RELEASED : IN_REGISTERED))))
#define AWAITING (held && !admitted -> IN_SUSPENDED : (window && !admitted -> IN_WINDOW_OPEN : IN_WINDOW_SHUT))
#define MEMBER (grant == given -> (found == applied -> IN_ADMITTED : IN_GRANTING) : (sealed -> IN_PROVEN : IN_ATTESTED))
#define STATE (!assigned -> AWAY : (attested && !(held && !admitted) -> MEMBER : AWAITING))
hidden byte was, is; /* the state before and after the command */
hidden byte carried;    /* the command */
#define NOW(command) was = STATE; carried = command
#ifdef FAULTY
#define ALLOWED true
#else
#define ALLOWED ( \
  carried == toAssign && MAY_ASSIGN(was, is) || carried == toRelease && MAY_RELEASE(was, is) || carried == toFence && MAY_FENCE(was, is) || \
  carried == toReplace && MAY_REPLACE(was, is) || carried == toResolve && MAY_RESOLVE(was, is) || \
  carried == toReopen && (MAY_REOPEN(was, is) || MAY_APPEAR(was, is)) || carried == toAttest && MAY_ATTEST(was, is) || \
  carried == toSeal && MAY_SEAL(was, is) || carried == toClaim && MAY_CLAIM(was, is) || carried == toRecord && MAY_READ_BACK(was, is))
#endif

active proctype Store() {
end:
  do
  :: atomic {
       if
       :: store ? toAssign(e, _) -> NOW(toAssign); assign(e)
       :: store ? toRelease(e, _) -> NOW(toRelease); release(e)
       :: store ? toFence(e, _) -> NOW(toFence); fence(e)
       :: store ? toReplace(e, _) -> NOW(toReplace); replace(e)
       :: store ? toResolve(_, _) -> NOW(toResolve); held = false
       :: store ? toReopen(_, _) -> NOW(toReopen); fenced = false
       :: store ? toAttest(e, locked) -> NOW(toAttest); attest(e, locked)
       :: store ? toSeal(e, _) -> NOW(toSeal); seal(e)
       :: store ? toClaim(_, _) -> NOW(toClaim); held = true
       :: store ? toRecord(e, _) -> NOW(toRecord); readBack(e)
       fi;
       settle();
       is = STATE;
       /* life-cycle: the step is one that the rules allow */
       assert(ALLOWED);
       check()
     }
  od
}

/* Operator reads the assignment, and orders something about it later. */
active proctype Operator() {
  byte orders, shown;
end:
  do
  :: atomic { orders < ORDERS -> orders++; shown = epoch };
     atomic {
       e = shown; shown = 0;
       if
       :: store ! toAssign(e, false)
       :: store ! toRelease(e, false)
       :: store ! toFence(e, false)
       :: store ! toReplace(e, false)
       :: held -> store ! toResolve(0, false)
       :: fenced -> store ! toReopen(0, false)
       :: !assigned && grant == none -> adapterLocked = false                 /* opened for service */
       fi
     }
  od
}

/* Provisioning runs the agent in the image: a session, evidence, a lock if it lacks one, the seal. */
active proctype Provisioning() {
  byte session;
  bool quoted;
end:
  do
  :: atomic { assigned && window && !admitted && !sealed -> session = epoch; quoted = adapterLocked };
     store ! toAttest(session, quoted);
     atomic {
       e = session; locked = quoted; session = 0; quoted = false;
       if
       :: locked -> store ! toSeal(e, false)
       :: else -> adapterLocked = true                                        /* the key came with a ticket */
       fi
     }
  od
}

/* Host is root on this host and on others. What it sends was sent before: it is late, twice or out of order. */
active proctype Host() {
  byte repeats, claims;
end:
  do
  :: atomic {
       repeats < REPEATS && epoch > 0 -> repeats++;
       if :: e = 0 :: e = 1 :: epoch > 1 -> e = 2 fi;
       if
       :: store ! toAttest(e, (e != epoch || adapterLocked))                  /* evidence of an earlier session */
       :: store ! toSeal(e, false)
       :: store ! toAssign(e, false)                                          /* kept by a proxy, sent once more */
       :: store ! toRelease(e, false)
       fi
     }
  :: atomic { claims < CLAIMS && assigned -> claims++; store ! toClaim(0, false) }
  od
}

/* Time lets leases run out: first the holder stops to trust its lease, later the store ends it. */
active proctype Time() {
end:
  do
  :: atomic { holder != 0 && TRUSTS(holder) && term < TERMS -> trust = trust & ~(1 << holder) }
#ifdef FAULT_NO_MARGIN
  :: atomic { holder != 0 && term < TERMS -> holder = 0 }
#else
  :: atomic { holder != 0 && !TRUSTS(holder) -> holder = 0 }
#endif
  od
}

#ifdef FAULT_NO_GUARD
#define LEADS true
#else
#define LEADS (holder == me && term == mine)
#endif

#ifdef FAULT_NO_LOOK
#define MAYSEND true
#else
#define MAYSEND TRUSTS(me)
#endif

#ifdef PAUSE
/* A leader that pauses between look and packet may send one after its lease, until a later term has changed the keys. */
#define ONE_WRITER (term == mine || current != term || previous != 0 || pending != 0)
#else
#define ONE_WRITER (holder == me && term == mine)
#endif

/* What a packet does to the device, which refuses a wrong M_Key. */
inline arrive() {
  if
  :: ACCEPTS(header) ->
     if
     :: act == setKey -> devicePrevious = deviceKey; deviceKey = value
     :: act == setPKey -> portKey = value
     :: act == shutPort -> portShut = value
     fi;
     /* one-writer: a packet that changes a device is of the holder of the lease */
     assert(ONE_WRITER)
  :: else
  fi
}

#ifdef KEYS_FIRST
/* In a term that succeeds another, absence counts once the device dropped the keys of earlier terms. */
#define ABSENCE_COUNTS (current == mine && pending == 0 && previous == 0)
#else
#define ABSENCE_COUNTS true
#endif

#ifdef FAULT_LEAVES_REMOVALS
/* Removals that another term began are left alone. */
#define OURS (grant != withdrawn || mine == 1)
#else
#define OURS true
#endif

proctype Instance(byte me) {
  mtype:packet act = idle;
  mtype:belief belief = unknown;
  byte mine = (me == 1 -> 1 : 0); /* the term in which it leads */
  byte header, value;   /* of the packet that was decided */
  byte seen;            /* revision of the ledger that the decision rests on */
  bool obeyed;          /* the last Set of Current was answered */
end:
  do
  :: atomic { holder == 0 && term < TERMS && act == idle ->
     term++; holder = me; mine = term; trust = trust | (1 << me); belief = unknown; obeyed = false }

  /* Which key is on the device? */
  :: atomic { act == idle && TRUSTS(me) && belief == unknown ->
     act = learn; value = deviceKey }

  /* Another key, once in each term that succeeds another: saved before it is sent. */
  :: atomic { act == idle && TRUSTS(me) && LEADS && belief == onCurrent && pending == 0 && current < mine ->
#ifdef FAULT_SET_BEFORE_SAVE
     act = setKey; header = current; value = mine
#else
     pending = mine; previous = 0
#endif
     }
  :: atomic { act == idle && TRUSTS(me) && belief == onCurrent && pending != 0 ->
     act = setKey; header = current; value = pending }
  :: atomic { act == idle && TRUSTS(me) && belief == onCurrent && pending == 0 && previous != 0 ->
     act = setKey; header = current; value = current }
  :: atomic { act == idle && TRUSTS(me) && belief == onPrevious ->
     act = setKey; header = previous; value = (pending != 0 -> pending : current) }

  /* The port as the ledger wants it. */
  :: atomic { act == idle && TRUSTS(me) && belief == onCurrent && portShut != fenced && ACCEPTS(current) ->
     act = shutPort; header = current; value = fenced }
  :: atomic { act == idle && TRUSTS(me) && belief == onCurrent && ACCEPTS(current) && OURS &&
       portKey != (grant == given -> grantEpoch : 0) ->
     act = setPKey; header = current; value = (grant == given -> grantEpoch : 0) }
  :: atomic { act == idle && TRUSTS(me) && belief == onCurrent && ACCEPTS(current) && found == unread &&
       (grant == given && portKey == grantEpoch || grant == withdrawn && portKey == 0 && ABSENCE_COUNTS) ->
     act = record; seen = revision }

  /* The lease is looked at right before a packet is sent. */
  :: atomic { (act == setKey || act == setPKey || act == shutPort) && MAYSEND ->
#ifdef PAUSE
     skip }; atomic { true ->
#endif
     if
     :: arrive(); obeyed = true
     :: losses < LOSSES -> losses++; arrive(); obeyed = false
     :: losses < LOSSES -> losses++; obeyed = false
     fi;
     if
#ifdef FAULT_BELIEVES_THE_SET
     :: act == setKey && value == pending -> previous = 0; current = pending; pending = 0
#endif
     :: act == setKey && belief == onCurrent && value == current && obeyed -> belief = unknown
     :: act == setKey && !(belief == onCurrent && value == current && obeyed) -> belief = unknown; obeyed = false
     :: act != setKey -> obeyed = false
     fi;
     act = idle; header = 0; value = 0; check() }

  /* What was read is written by condition. */
  :: atomic { act == learn && LEADS ->
     if
     :: value == pending -> previous = current; current = pending; pending = 0; belief = onCurrent
     :: value == current && pending == 0 && obeyed -> previous = 0; belief = onCurrent
     :: value == current && !(pending == 0 && obeyed) -> belief = onCurrent
     :: value == previous && value != 0 -> belief = onPrevious
     fi;
     obeyed = false; act = idle; value = 0; check() }
  :: atomic { act == record && LEADS -> act = idle; store ! toRecord(seen, false); seen = 0 }

  /* The term is over. */
  :: atomic { act != idle && !TRUSTS(me) -> act = idle; header = 0; value = 0; seen = 0; belief = unknown; obeyed = false }
  od
}

init { atomic { run Instance(1); run Instance(2) } }

/* Each removal that was ordered ends. */
ltl ends { [] (grant == withdrawn -> <> (grant != withdrawn)) }
