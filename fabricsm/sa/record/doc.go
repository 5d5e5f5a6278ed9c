// Package record answers subnet administration's questions for records that describe
// the fabric: nodes, ports, switches and their tables, links, Subnet Managers (IBTA
// volume 1, 15.2.5). [Find] gives a cursor, which makes one record at a time, so that
// a whole table is sent without ever being in memory.
package record
