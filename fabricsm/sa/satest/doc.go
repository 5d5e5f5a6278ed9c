// Package satest queries subnet administration as clients do, and starts the manager that answers on a real ibsim: OpenSM or
// portcullisd. Tests compare the answers of the two; benchmarks measure them with the same queries.
//
// Client uses the simulator's socket directly and reassembles segments. Other programs run with Preload. It adds what the
// simulator's own preload library lacks: segments in both directions, whole MADs, and timeouts.
package satest
