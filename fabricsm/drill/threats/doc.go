// Package threats has the drills of the fabric: one file for each group of threats, in the order of their numbers. Those of
// subnet administration are in package administration.
package threats
