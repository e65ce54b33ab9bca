package display

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// largest is the most pixels along a side of any picture.
var largest = space.Limit{Edge: 8000}

// least is the size below which a picture is not made smaller for MaxBytes.
const least = 64

// plainJPEG makes a JPEG file with Go's own library.
func plainJPEG(r *raster, quality int) ([]byte, error) {
	var b bytes.Buffer
	err := jpeg.Encode(&b, r.rgba(), &jpeg.Options{Quality: quality})
	return b.Bytes(), err
}

func pngs(r *raster) ([]byte, error) {
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, r.rgba())
	return b.Bytes(), err
}

// encode makes the file that a asks for of r, whose curtain is drawn.
func encode(r *raster, a hands.Ask) (data []byte, format string, size image.Point, err error) {
	format = a.Format
	if format == "" {
		format = hands.JPEG
	}
	if format != hands.JPEG && format != hands.PNG {
		return nil, "", size, wire.Errorf(wire.CodeNotSupported, "Pictures are JPEG or PNG.")
	}
	quality := a.Quality
	if quality <= 0 {
		quality = 75
	}
	quality = min(quality, 100)
	full := r.rect.Size()
	size = a.Limit.Fit(largest.Fit(full))
	for {
		small := r
		if size != full || len(a.Mark) > 0 {
			small = r.scaled(size)
		}
		view := space.View{Area: r.rect, Size: size}
		for _, m := range a.Mark {
			if p, ok := view.Picture(m); ok {
				small.ring(p)
			}
		}
		for {
			if format == hands.PNG {
				data, err = pngs(small)
			} else {
				data, err = jpegs(small, quality)
			}
			if err != nil {
				return nil, "", size, wire.Wrap(err, wire.CodeInternal, "The picture could not be written.")
			}
			if a.MaxBytes == 0 || len(data) <= a.MaxBytes {
				return data, format, size, nil
			}
			if a.Exact {
				return nil, "", size, wire.Errorf(wire.CodeTooLarge, "The picture has %d bytes, more than the %d that were asked for.", len(data), a.MaxBytes)
			}
			if format == hands.PNG || quality <= 35 {
				break
			}
			quality = max(35, quality-20)
		}
		if max(size.X, size.Y) <= least {
			return nil, "", size, wire.Errorf(wire.CodeTooLarge, "No picture of this screen fits into %d bytes.", a.MaxBytes)
		}
		size = space.Limit{Edge: max(least, max(size.X, size.Y)*3/4)}.Fit(full)
	}
}
