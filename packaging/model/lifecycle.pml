/* Made of the rules in api/lifecycle by its test. The model asserts that each of its steps is one of these. */

#define IN_UNKNOWN 0
#define IN_REGISTERED 1
#define IN_RELEASED 2
#define IN_FENCED 3
#define IN_QUARANTINED 4
#define IN_WINDOW_OPEN 5
#define IN_WINDOW_SHUT 6
#define IN_SUSPENDED 7
#define IN_ATTESTED 8
#define IN_PROVEN 9
#define IN_GRANTING 10
#define IN_ADMITTED 11
#define IN_RELEASING 12

#define MAY_IMPORT(from, to) ((from) == (to) || (from) == 0 && (to) == 1 || (from) == 0 && (to) == 2 || (from) == 0 && (to) == 3)
#define MAY_ASSIGN(from, to) ((from) == (to) || (from) == 1 && (to) == 5 || (from) == 2 && (to) == 5 || (from) == 3 && (to) == 5 || (from) == 6 && (to) == 5 || (from) == 8 && (to) == 5 || (from) == 9 && (to) == 5)
#define MAY_ATTEST(from, to) ((from) == (to) || (from) == 5 && (to) == 8 || (from) == 9 && (to) == 8 || (from) == 10 && (to) == 8)
#define MAY_SEAL(from, to) ((from) == (to) || (from) == 8 && (to) == 9 || (from) == 8 && (to) == 10)
#define MAY_READ_BACK(from, to) ((from) == (to) || (from) == 10 && (to) == 11 || (from) == 12 && (to) == 2 || (from) == 12 && (to) == 3 || (from) == 12 && (to) == 4)
#define MAY_APPEAR(from, to) ((from) == (to) || (from) == 9 && (to) == 10)
#define MAY_VANISH(from, to) ((from) == (to) || false)
#define MAY_CLAIM(from, to) ((from) == (to) || (from) == 1 && (to) == 4 || (from) == 2 && (to) == 4 || (from) == 3 && (to) == 4 || (from) == 5 && (to) == 7 || (from) == 6 && (to) == 7 || (from) == 8 && (to) == 7 || (from) == 9 && (to) == 7 || (from) == 10 && (to) == 7 || (from) == 11 && (to) == 7)
#define MAY_RESOLVE(from, to) ((from) == (to) || (from) == 4 && (to) == 1 || (from) == 4 && (to) == 2 || (from) == 4 && (to) == 3 || (from) == 7 && (to) == 5 || (from) == 7 && (to) == 6 || (from) == 7 && (to) == 8 || (from) == 7 && (to) == 9 || (from) == 7 && (to) == 10)
#define MAY_REPLACE(from, to) ((from) == (to) || (from) == 5 && (to) == 6 || (from) == 8 && (to) == 6 || (from) == 9 && (to) == 6 || (from) == 10 && (to) == 6 || (from) == 11 && (to) == 6)
#define MAY_EXPIRE(from, to) ((from) == (to) || (from) == 5 && (to) == 6 || (from) == 8 && (to) == 6 || (from) == 9 && (to) == 6 || (from) == 10 && (to) == 6)
#define MAY_RELEASE(from, to) ((from) == (to) || (from) == 5 && (to) == 2 || (from) == 5 && (to) == 3 || (from) == 6 && (to) == 2 || (from) == 6 && (to) == 3 || (from) == 6 && (to) == 4 || (from) == 6 && (to) == 12 || (from) == 7 && (to) == 4 || (from) == 7 && (to) == 12 || (from) == 8 && (to) == 2 || (from) == 8 && (to) == 3 || (from) == 8 && (to) == 12 || (from) == 9 && (to) == 2 || (from) == 9 && (to) == 3 || (from) == 9 && (to) == 12 || (from) == 10 && (to) == 12 || (from) == 11 && (to) == 12)
#define MAY_FENCE(from, to) ((from) == (to) || (from) == 1 && (to) == 3 || (from) == 2 && (to) == 3 || (from) == 5 && (to) == 3 || (from) == 6 && (to) == 3 || (from) == 6 && (to) == 4 || (from) == 6 && (to) == 12 || (from) == 7 && (to) == 4 || (from) == 7 && (to) == 12 || (from) == 8 && (to) == 3 || (from) == 8 && (to) == 12 || (from) == 9 && (to) == 3 || (from) == 9 && (to) == 12 || (from) == 10 && (to) == 12 || (from) == 11 && (to) == 12)
#define MAY_REOPEN(from, to) ((from) == (to) || (from) == 3 && (to) == 1 || (from) == 3 && (to) == 2)
#define MAY_REMOVE(from, to) ((from) == (to) || (from) == 1 && (to) == 0 || (from) == 2 && (to) == 0 || (from) == 3 && (to) == 0)
