// Package ndt reads and writes the cabling plans that the NDT plugin of UFM works with: CSV with a header, one cable a
// line, both ends by the names that operators use.
//
//	#StartDevice,StartPort,EndDevice,EndPort,LinkType
//	leaf-1-IB0,Port 21,spine-1-IB1,Blade 16_Port 2/20,Data
//	host-7,host-7 ibp11s0f0,leaf-1-IB0,Port 1,Data
//
// A plan has no GUID, so it cannot identify a device. A revision is created from it and a [generate.Manifest], which has
// the GUIDs that were delivered. Names that devices report are not used.
//
// The columns StartDevice (also written #StartDevice and #Fields:StartDevice), StartPort, EndDevice and EndPort must be
// there. LinkType, State, Domain, "rack #", "U height" and the locations of both ends are used where they are; all others
// are ignored, since plans are sheets with additional notes. Lines whose LinkType is not Data are no InfiniBand cables:
// they are counted, not read. A line without end device is a port without a cable, as the form with State has them.
//
// How ports are written:
//
//	Port 21             port 21, by number
//	Port 1/16/1         chip, cage and port, as printed beside the cage; 16/1, too
//	Blade 16_Port 2/20  a director: port 20 of chip 2 of leaf 16, which the manifest
//	                    names DEVICE/L16/U2
//	HOST ibp11s0f0      port 1 of the adapter that the manifest names so
//	mlx5_0              port 1 of the adapter that the manifest names DEVICE mlx5_0
package ndt
