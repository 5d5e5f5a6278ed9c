// Package lifecycle is the life of a host as one state machine: which states there are, which commands, what refuses a
// command, and what it changes. It knows values alone: no store, no clock, no texts for people.
//
// Facts are what is known of a host. Of returns the state that follows from them; no state is stored. Next decides about a
// command, and returns the facts after it. The rules of all commands are one table, Rules, of which the page
// docs/understand/life-cycle.md is made.
package lifecycle
