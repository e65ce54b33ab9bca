package main

import (
	"log/slog"
	"testing"
	"time"
)

func TestAPartThatHangsDoesNotKeepTheProgram(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	exited, hang := make(chan int, 1), make(chan struct{})
	go leave(log, 10*time.Millisecond, func(code int) { exited <- code }, func() { <-hang })
	select {
	case code := <-exited:
		if code != 1 {
			t.Errorf("ended with %d", code)
		}
	case <-time.After(5 * time.Second):
		t.Error("still there")
	}
	close(hang)
	closed := false
	leave(log, time.Hour, func(int) { t.Error("ended although nothing hangs") }, func() { closed = true })
	if !closed {
		t.Error("nothing was put away")
	}
}
