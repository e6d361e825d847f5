"""The compiled BPF object (stallscope.bpf.o) as package data."""
