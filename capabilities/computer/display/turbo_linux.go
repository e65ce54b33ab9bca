//go:build cgo

package display

/*
#cgo LDFLAGS: -lturbojpeg
#include <turbojpeg.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

// libjpeg-turbo encodes a screen some ten times as fast as image/jpeg, which
// stays for where it is not linked in, and for what it refuses.
var jpegs = turboJPEG

func turboJPEG(r *raster, quality int) ([]byte, error) {
	out, err := turbo(r, quality)
	if err != nil {
		return plainJPEG(r, quality)
	}
	return out, nil
}

func turbo(r *raster, quality int) ([]byte, error) {
	w, h := r.rect.Dx(), r.rect.Dy()
	if len(r.pix) < (h-1)*r.stride+4*w {
		return nil, errors.New("too few pixels")
	}
	handle := C.tjInitCompress()
	if handle == nil {
		return nil, errors.New("no compressor")
	}
	defer C.tjDestroy(handle)
	format := C.int(C.TJPF_BGRX)
	if r.rgb {
		format = C.TJPF_RGBX
	}
	var file *C.uchar
	var size C.ulong
	defer func() { C.tjFree(file) }()
	if C.tjCompress2(handle, (*C.uchar)(unsafe.Pointer(&r.pix[0])), C.int(w), C.int(r.stride), C.int(h), format,
		&file, &size, C.TJSAMP_420, C.int(quality), 0) != 0 {
		return nil, errors.New(C.GoString(C.tjGetErrorStr2(handle)))
	}
	return C.GoBytes(unsafe.Pointer(file), C.int(size)), nil
}
