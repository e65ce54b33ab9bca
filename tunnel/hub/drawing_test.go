package hub

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"testing"
	"time"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Few pictures are worked on at once: the next one waits, and not for longer
// than its request.
func TestPicturesWaitForEachOther(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	pic := &taken{ScreenshotImage: &msg.ScreenshotImage{MIMEType: "image/png"}, raw: b.Bytes(), size: image.Pt(40, 20)}
	ctx, cancel := context.WithCancel(t.Context())
	j := &job{ctx: ctx, c: &companion{h: &Hub{drawing: make(chan struct{}, 1)}}}
	for range 2 {
		if _, mime, _, err := j.fitted(pic, &wire.Screenshot{Format: "jpeg"}); err != nil || mime != "image/jpeg" {
			t.Fatalf("%s: %v", mime, err)
		}
	}
	j.c.h.drawing <- struct{}{}
	if _, _, _, err := j.fitted(pic, &wire.Screenshot{Format: "png"}); err != nil {
		t.Errorf("one that is sent as it is waits: %v", err)
	}
	done := make(chan error, 1)
	next := func() {
		go func() {
			_, _, _, err := j.fitted(pic, &wire.Screenshot{Format: "jpeg"})
			done <- err
		}()
		select {
		case err := <-done:
			t.Fatalf("one more than may be did not wait: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	next()
	<-j.c.h.drawing
	if err := <-done; err != nil {
		t.Errorf("after its turn came: %v", err)
	}
	j.c.h.drawing <- struct{}{}
	next()
	cancel()
	if err := <-done; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("when its request ended: %v", err)
	}
}
