DROP TABLE installation_keys;
