//go:build linux

package portal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// gst takes frames out of PipeWire, as a program of its own: so this one runs
// where PipeWire's libraries are not.
const gst = "gst-launch-1.0"

// Frames tells whether frames of shared screens can be had, and if not what is
// lacking.
func Frames() error {
	if _, err := exec.LookPath(gst); err != nil {
		return errors.New("the packages gstreamer1.0-tools, gstreamer1.0-plugins-base and gstreamer1.0-pipewire are needed for that")
	}
	return nil
}

// maxFrame is the most bytes of one frame.
const maxFrame = 4 * 16384 * 16384

var capsSize = regexp.MustCompile(`video/x-raw, .*width=\(int\)(\d+), height=\(int\)(\d+)`)

// Frame takes one picture of a shared screen.
func (s *Session) Frame(ctx context.Context, of Stream) (*image.RGBA, error) {
	if err := Frames(); err != nil {
		return nil, err
	}
	remote, err := s.PipeWire(ctx)
	if err != nil {
		return nil, err
	}
	defer remote.Close()
	pixels, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer pixels.Close()
	// Descriptors of the child: 3 is PipeWire's, 4 takes the pixels. Its standard
	// output says, with -v, how large they are.
	cmd := exec.CommandContext(ctx, gst, "-v", "pipewiresrc", "fd=3", "path="+strconv.FormatUint(uint64(of.Node), 10), "num-buffers=1", "always-copy=true",
		"!", "videoconvert", "!", "video/x-raw,format=RGBA", "!", "fdsink", "fd=4", "sync=false")
	cmd.ExtraFiles = []*os.File{remote, out}
	var said, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &failed
	if err := cmd.Start(); err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("take a frame: %w", err)
	}
	_ = out.Close()
	pix, readErr := io.ReadAll(bufio.NewReader(io.LimitReader(pixels, maxFrame)))
	if err := errors.Join(cmd.Wait(), readErr); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("take a frame: %w: %.200s", err, failed.String())
	}
	found := capsSize.FindAllStringSubmatch(said.String(), -1)
	if len(found) == 0 {
		return nil, errors.New("take a frame: its size is not known")
	}
	last := found[len(found)-1]
	w, _ := strconv.Atoi(last[1])
	h, _ := strconv.Atoi(last[2])
	if w < 1 || h < 1 || len(pix) < 4*w*h {
		return nil, fmt.Errorf("take a frame: %d bytes came of %d × %d pixels", len(pix), w, h)
	}
	for i := 3; i < 4*w*h; i += 4 {
		pix[i] = 255
	}
	return &image.RGBA{Pix: pix[:4*w*h], Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}, nil
}
