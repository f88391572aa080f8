DROP INDEX log_entry_closes_run;
DROP INDEX log_entry_erases;
DROP INDEX log_entry_says_erased;
