// Package salab asks subnet administration as clients do, and starts who answers on a
// real ibsim: OpenSM or portcullisd. Tests compare what the two say; benchmarks
// measure them by the same questions.
//
// Client speaks the simulator's socket itself and puts segments together. Programs of
// others are run with Preload, which gives them what the simulator's own preload
// library lacks: segments in both directions, whole MADs, and timeouts.
package salab
