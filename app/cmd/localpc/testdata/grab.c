/* The least that a picture of the screen can cost: shared memory and
   libjpeg-turbo, N times; each time in nanoseconds, a line. "make bench" builds
   it, and measures the program against it. */
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <turbojpeg.h>

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
	int n = argc > 1 ? atoi(argv[1]) : 1;
	Display *d = XOpenDisplay(NULL);
	if (!d) return 1;
	int screen = DefaultScreen(d), w = DisplayWidth(d, screen), h = DisplayHeight(d, screen);
	XShmSegmentInfo shm;
	XImage *img = XShmCreateImage(d, DefaultVisual(d, screen), DefaultDepth(d, screen), ZPixmap, NULL, &shm, w, h);
	if (!img) return 2;
	shm.shmid = shmget(IPC_PRIVATE, img->bytes_per_line * h, IPC_CREAT | 0600);
	shm.shmaddr = img->data = shmat(shm.shmid, 0, 0);
	shm.readOnly = False;
	XShmAttach(d, &shm);
	XSync(d, False);
	shmctl(shm.shmid, IPC_RMID, 0);
	tjhandle jpeg = tjInitCompress();
	for (int i = 0; i < n; i++) {
		unsigned char *file = NULL;
		unsigned long size = 0;
		long long began = now();
		if (!XShmGetImage(d, RootWindow(d, screen), img, 0, 0, AllPlanes)) return 3;
		if (tjCompress2(jpeg, (unsigned char *)img->data, w, img->bytes_per_line, h, TJPF_BGRX, &file, &size, TJSAMP_420, 75, 0)) return 4;
		printf("%lld %lu\n", now() - began, size);
		tjFree(file);
	}
	return 0;
}
