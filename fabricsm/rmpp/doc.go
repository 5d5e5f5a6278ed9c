// Package rmpp carries data that needs more than one MAD: segments, windows,
// acknowledgements (IBTA volume 1, 13.6; reference/ib-sa.md section 2).
package rmpp
