// Package disclosure judges what subnet administration answers to a port that shows no SA_Key: whether an answer names a port of another
// party with which the port that asks shares no P_Key, or shows a key.
//
// It takes the answers as bytes, and compares them with the tables that package reader read of the devices. It knows no Subnet Manager,
// and no code of what answers.
package disclosure
