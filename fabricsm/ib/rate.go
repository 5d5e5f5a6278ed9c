package ib

import (
	"cmp"
	"fmt"
)

// Rate is the standard's code of a static rate, as path records and address
// vectors have it (IBTA volume 1, 9.11.1 and 15.2.5.16). The codes are not in
// the order of the rates: compare with Compare. Zero means "not given".
type Rate uint8

// Rates. The name is the rate in Gb/s.
const (
	Rate2_5  Rate = 2
	Rate10   Rate = 3
	Rate30   Rate = 4
	Rate5    Rate = 5
	Rate20   Rate = 6
	Rate40   Rate = 7
	Rate60   Rate = 8
	Rate80   Rate = 9
	Rate120  Rate = 10
	Rate14   Rate = 11
	Rate56   Rate = 12
	Rate112  Rate = 13
	Rate168  Rate = 14
	Rate25   Rate = 15
	Rate100  Rate = 16
	Rate200  Rate = 17
	Rate300  Rate = 18
	Rate28   Rate = 19
	Rate50   Rate = 20
	Rate400  Rate = 21
	Rate600  Rate = 22
	Rate800  Rate = 23
	Rate1200 Rate = 24
	Rate1600 Rate = 25
	Rate2400 Rate = 26
)

// rates has Mb/s by code.
var rates = [...]int{
	Rate2_5: 2500, Rate5: 5000, Rate10: 10000, Rate14: 14000, Rate20: 20000, Rate25: 25000, Rate28: 28000,
	Rate30: 30000, Rate40: 40000, Rate50: 50000, Rate56: 56000, Rate60: 60000, Rate80: 80000, Rate100: 100000,
	Rate112: 112000, Rate120: 120000, Rate168: 168000, Rate200: 200000, Rate300: 300000, Rate400: 400000,
	Rate600: 600000, Rate800: 800000, Rate1200: 1200000, Rate1600: 1600000, Rate2400: 2400000,
}

// RateOf returns the code of the rate of a link, 0 if width or speed is not known.
func RateOf(w LinkWidth, s Speed) Rate { return RateFromMbps(w.Lanes() * s.LaneRate()) }

// RateFromMbps returns the code of exactly that rate in Mb/s, 0 if there is none.
func RateFromMbps(mbps int) Rate {
	for r, v := range rates {
		if v != 0 && v == mbps {
			return Rate(r)
		}
	}
	return 0
}

// Mbps returns the rate in Mb/s, 0 for a code that is not known.
func (r Rate) Mbps() int {
	if int(r) < len(rates) {
		return rates[r]
	}
	return 0
}

// Compare orders by rate: negative if r is slower than o. Codes that are not
// known are slowest.
func (r Rate) Compare(o Rate) int { return cmp.Compare(r.Mbps(), o.Mbps()) }

// AtMost returns the fastest rate that is no faster than r and has a code of at most top, for clients that do not know
// later codes; 0 if there is none.
func (r Rate) AtMost(top Rate) Rate {
	best := Rate(0)
	for o := Rate2_5; o <= top && int(o) < len(rates); o++ {
		if o.Compare(r) <= 0 && o.Compare(best) > 0 {
			best = o
		}
	}
	return best
}

// String returns the rate as "100 Gb/s".
func (r Rate) String() string {
	mbps := r.Mbps()
	switch {
	case mbps == 0:
		return fmt.Sprintf("Rate(%d)", uint8(r))
	case mbps%1000 != 0:
		return fmt.Sprintf("%d.%d Gb/s", mbps/1000, mbps%1000/100)
	default:
		return fmt.Sprintf("%d Gb/s", mbps/1000)
	}
}
