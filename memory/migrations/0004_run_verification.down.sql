DROP TABLE run_verification;
