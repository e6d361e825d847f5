<?php
// A page that keeps its session, and so the lock of the session's file, while it works.
session_save_path(__DIR__ . '/sessions');
session_start();
$_SESSION['pages'] = ($_SESSION['pages'] ?? 0) + 1;
usleep(30000);
echo $_SESSION['pages'];
