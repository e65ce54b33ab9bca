package display

import (
	"encoding/binary"
	"image"
	"runtime"
	"sync"
)

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

// Three channels of one pixel lie in one number, 21 bits apart, so that one
// multiplication weighs them all: 8 bits and wholeBits fit.
const (
	half     = whole/2 | whole/2<<21 | whole/2<<42
	channels = 255 | 255<<21 | 255<<42
)

func spread(pixel []byte) uint64 {
	v := uint64(binary.LittleEndian.Uint32(pixel))
	return v&0xff | v&0xff00<<13 | v&0xff0000<<26
}

// scaled is r at size, which is not larger: each pixel is the mean of those
// that it covers. Its rect begins at (0, 0).
func (r *raster) scaled(size image.Point) *raster {
	out := &raster{pix: make([]byte, 4*size.X*size.Y), stride: 4 * size.X, rect: image.Rectangle{Max: size}, rgb: r.rgb}
	across, down := shares(r.rect.Dx(), size.X), shares(r.rect.Dy(), size.Y)
	bands := min(runtime.GOMAXPROCS(0), 4, size.Y/64+1)
	var done sync.WaitGroup
	for b := range bands {
		done.Go(func() { r.band(out, across, down, b*size.Y/bands, (b+1)*size.Y/bands) })
	}
	done.Wait()
	return out
}

// band makes the lines from y0 to y1 of out.
func (r *raster) band(out *raster, across, down []share, y0, y1 int) {
	w := r.rect.Dx()
	sum := make([]uint64, w)
	for y := y0; y < y1; y++ {
		parts := down[y].of
		for i, part := range parts {
			line := r.pix[(down[y].first+i)*r.stride:]
			line = line[:4*w]
			row := sum[:w]
			switch {
			case len(parts) == 1:
				for x := range row {
					row[x] = spread(line[4*x : 4*x+4])
				}
			case i == 0:
				for x := range row {
					row[x] = spread(line[4*x:4*x+4])*part + half
				}
			case i < len(parts)-1:
				for x := range row {
					row[x] += spread(line[4*x:4*x+4]) * part
				}
			default: // and back to 8 bits
				for x := range row {
					row[x] = (row[x] + spread(line[4*x:4*x+4])*part) >> wholeBits & channels
				}
			}
		}
		to := out.pix[y*out.stride:]
		to = to[:4*len(across)]
		for x := range across {
			s := &across[x]
			v := uint64(half)
			if near := sum[s.first:]; len(s.of) == 2 {
				v += near[0]*s.of[0] + near[1]*s.of[1]
			} else {
				for i, part := range s.of {
					v += near[i] * part
				}
			}
			binary.LittleEndian.PutUint32(to[4*x:4*x+4], uint32(v>>wholeBits&0xff|v>>(13+wholeBits)&0xff00|v>>(26+wholeBits)&0xff0000))
		}
	}
}
