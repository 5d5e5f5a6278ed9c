// Package layout shows operators what the inventory has where: racks with their units, switches with their cables, cables
// with both ends, and stock. It changes nothing, and knows no HTTP.
package layout
