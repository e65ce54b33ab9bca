package display

import "image"

// share is how much of a source pixel counts for one that it is scaled to, of
// whole; the shares of one target pixel add up to whole.
const (
	wholeBits = 12
	whole     = 1 << wholeBits
)

type share struct {
	first int      // source pixel
	of    []uint64 // its share and those of the next ones
}

// shares of scaling from pixels to to, which are fewer or as many: each target
// pixel is the mean of what it covers.
func shares(from, to int) []share {
	out := make([]share, to)
	for i := range out {
		lo, hi := i*from, (i+1)*from // in units of 1/to source pixel
		first, last := lo/to, (hi-1)/to
		s := share{first: first, of: make([]uint64, last-first+1)}
		given := uint64(0)
		for p := first; p <= last; p++ {
			upTo := uint64(min(hi, (p+1)*to)-lo) * whole / uint64(from) // so that they add up
			s.of[p-first] = upTo - given
			given = upTo
		}
		out[i] = s
	}
	return out
}

// scaled is r at size, which is not larger: each pixel is the mean of those
// that it covers. Its rect begins at (0, 0).
func (r *raster) scaled(size image.Point) *raster {
	w, h := r.rect.Dx(), r.rect.Dy()
	out := &raster{pix: make([]byte, 4*size.X*size.Y), stride: 4 * size.X, rect: image.Rectangle{Max: size}, rgb: r.rgb}
	across, down := shares(w, size.X), shares(h, size.Y)
	// Three channels of one pixel lie in one number, 21 bits apart, so that one
	// multiplication weighs them all: 8 bits and wholeBits fit.
	const half = whole/2 | whole/2<<21 | whole/2<<42
	sum := make([]uint64, w)
	for y := range size.Y {
		for i, part := range down[y].of {
			line := r.pix[(down[y].first+i)*r.stride:]
			line = line[:4*w]
			if i == 0 {
				for x := range sum {
					p := line[4*x : 4*x+4 : 4*x+4]
					sum[x] = (uint64(p[0]) | uint64(p[1])<<21 | uint64(p[2])<<42) * part
				}
				continue
			}
			for x := range sum {
				p := line[4*x : 4*x+4 : 4*x+4]
				sum[x] += (uint64(p[0]) | uint64(p[1])<<21 | uint64(p[2])<<42) * part
			}
		}
		for x := range sum { // rounded back to 8 bits
			sum[x] = ((sum[x] + half) >> wholeBits) & (255 | 255<<21 | 255<<42)
		}
		to := out.pix[y*out.stride:]
		to = to[:4*size.X]
		for x := range across {
			s := &across[x]
			v := uint64(half)
			for i, part := range s.of {
				v += sum[s.first+i] * part
			}
			p := to[4*x : 4*x+4 : 4*x+4]
			p[0], p[1], p[2] = byte(v>>wholeBits), byte(v>>(21+wholeBits)), byte(v>>(42+wholeBits))
		}
	}
	return out
}
