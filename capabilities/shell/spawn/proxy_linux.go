package spawn

import (
	"encoding/binary"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Sockets are made with bare system calls here: package net would make each
// start of a command dearer.

// listen makes the socket that a container's proxy is reached at.
func listen() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// connect is RoleConnect. It speaks SOCKS5 (RFC 1928) to the proxy.
func connect(host, port string) int {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || len(host) > 255 {
		return complain("that is no host and port")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return complain("there is no way out of this container")
	}
	conn := os.NewFile(uintptr(fd), "proxy")
	ask := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(host))}, host...)
	if _, err := conn.Write(binary.BigEndian.AppendUint16(ask, uint16(n))); err != nil {
		return complain("the proxy does not answer")
	}
	answer := make([]byte, 12) // method, and the reply with an IPv4 address
	if k, err := io.ReadFull(conn, answer); err != nil && k < 4 || answer[1] != 0 {
		return complain("the proxy does not answer")
	}
	switch answer[3] {
	case 0:
	case 2:
		return complain("a connection to " + host + " was not allowed")
	default:
		return complain("there is no connection to " + host)
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = unix.Shutdown(fd, unix.SHUT_WR)
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

func complain(what string) int {
	os.Stderr.WriteString("localpc: " + what + "\n")
	return 1
}
