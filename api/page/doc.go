// Package page cuts the lists of the API into pages. A page ends with a cursor that names the last
// item, not how many there were before it. So items that come or go between two pages neither shift
// nor repeat the others. Where the store keeps a list in its order, a page costs what it holds: it is
// read from its first record on.
package page
