// Package record answers queries for records that describe the fabric: nodes, ports, switches and their tables, links,
// Subnet Managers (IBTA volume 1, 15.2.5). [Find] returns a cursor, which makes one record at a time, so a whole table is
// never in memory.
package record
