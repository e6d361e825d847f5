#ifndef STALLSCOPE_DEMO_CUDA_H
#define STALLSCOPE_DEMO_CUDA_H

struct cudaDeviceProp {
	char name[256];
	int multiProcessorCount;
};

/* 0, or a positive errno: EPERM without CAP_NET_ADMIN, ENODEV where the kernel has no tun. */
int cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);

#endif
