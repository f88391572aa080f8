DROP TABLE verification_job;
