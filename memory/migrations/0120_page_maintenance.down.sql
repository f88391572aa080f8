DROP TABLE page_maintenance;
