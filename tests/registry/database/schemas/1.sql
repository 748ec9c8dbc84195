BEGIN TRANSACTION;
CREATE TABLE candidate (
	id VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	parent_id VARCHAR, 
	original_sha256 VARCHAR(64) NOT NULL, 
	kernel VARCHAR NOT NULL, 
	object_sha256 VARCHAR(64), 
	assembly_sha256 VARCHAR(64), 
	edits JSON NOT NULL, 
	rule VARCHAR NOT NULL, 
	direction VARCHAR NOT NULL, 
	rationale VARCHAR NOT NULL, 
	worker INTEGER NOT NULL, 
	status VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_candidate PRIMARY KEY (id), 
	CONSTRAINT fk_candidate_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_candidate_parent_id FOREIGN KEY(parent_id) REFERENCES candidate (id), 
	CONSTRAINT fk_candidate_original_sha256 FOREIGN KEY(original_sha256) REFERENCES code_object (sha256), 
	CONSTRAINT fk_candidate_object_sha256 FOREIGN KEY(object_sha256) REFERENCES code_object (sha256)
);
INSERT INTO "candidate" VALUES('c1','20261130T073043Z-ffc4c69d',NULL,'445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','layer_norm_kernel_func','cc7829c57a24dbc0ecb57497d791667035019915f233339b83402b007519d1af','f1fc368a989ad0a6959f367ca287cede4dc1f6cf68d8ffb74c8f79f83386b671','[{"kernel":"layer_norm_kernel_func","lines":["s_nop 0","s_nop 1"],"reason":"shorter wait","start":3,"stop":5}]','nop-trim','latency-hiding','fewer wait states',2,'rejected','2026-11-30 07:30:43.167412');
INSERT INTO "candidate" VALUES('c2','20261130T073043Z-ffc4c69d','c1','445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','layer_norm_kernel_func','82a5816eceaebef6a7c05063305beee89369f63e7196e950cc0d804f7fa89cca','6805caa5ea3f287a05db1547e2dbccb04b214d157fb50b079e7231fd39835c29','[{"kernel":"layer_norm_kernel_func","lines":["s_nop 0","s_nop 1"],"reason":"shorter wait","start":3,"stop":5}]','nop-trim','latency-hiding','fewer wait states',2,'committed','2026-11-30 07:30:43.201773');
CREATE TABLE code_object (
	sha256 VARCHAR(64) NOT NULL, 
	isa VARCHAR NOT NULL, 
	size INTEGER NOT NULL, 
	kernels JSON NOT NULL, 
	source VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_code_object PRIMARY KEY (sha256)
);
INSERT INTO "code_object" VALUES('445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','gfx942',9192,'["layer_norm_kernel_func"]','amd-aiter','2026-11-30 07:30:43.020847');
INSERT INTO "code_object" VALUES('cc7829c57a24dbc0ecb57497d791667035019915f233339b83402b007519d1af','gfx942',9192,'["layer_norm_kernel_func"]','candidate c1','2026-11-30 07:30:43.168701');
INSERT INTO "code_object" VALUES('82a5816eceaebef6a7c05063305beee89369f63e7196e950cc0d804f7fa89cca','gfx942',9192,'["layer_norm_kernel_func"]','candidate c2','2026-11-30 07:30:43.202830');
CREATE TABLE dispatch (
	sha256 VARCHAR(64) NOT NULL, 
	kernel VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	held_out BOOLEAN NOT NULL, 
	content_sha256 VARCHAR(64) NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_dispatch PRIMARY KEY (sha256)
);
INSERT INTO "dispatch" VALUES('0764932a77d312fb13399f24a97c9e23c1763512be765ac057202e6c6c8288f9','layer_norm_kernel_func','m4',0,'644037e9b53d379ce5b8ca48fa99abf55bf83f695ab185407ae3e6e996855fbb','2026-11-30 07:30:43.091685');
INSERT INTO "dispatch" VALUES('de7c2e6ccf4a5ec63751e4e08f2ab6466116f02386ae7f3b1d18a1b1a17051c3','layer_norm_kernel_func','m64',1,'d63d3d1d12dd45a5a341acd2a97b7ab9bba96914eb1a9590a75a39ad8031bab1','2026-11-30 07:30:43.111533');
CREATE TABLE recovered_object (
	id INTEGER NOT NULL, 
	code_object_sha256 VARCHAR(64) NOT NULL, 
	assembly_sha256 VARCHAR(64) NOT NULL, 
	report JSON NOT NULL, 
	toolchain JSON NOT NULL, 
	toolchain_sha256 VARCHAR(64) NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_recovered_object PRIMARY KEY (id), 
	CONSTRAINT uq_recovered_object_version UNIQUE (code_object_sha256, assembly_sha256, toolchain_sha256), 
	CONSTRAINT fk_recovered_object_code_object_sha256 FOREIGN KEY(code_object_sha256) REFERENCES code_object (sha256)
);
INSERT INTO "recovered_object" VALUES(1,'445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','57279bf42aba7714065d273c667359f8b4e6d22345c3452ea85f9d3adba5c9f4','{"identical":true}','{"assembler":"22.1"}','db7d57eb5c59c8d18a1483a950772f290543a1da13ae584c01f22e7c0ec09d00','2026-11-30 07:30:43.050042');
CREATE TABLE registry_schema (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_registry_schema PRIMARY KEY (id)
);
INSERT INTO "registry_schema" VALUES(1,1,'2026-11-30 07:30:42.984523');
CREATE TABLE replacement (
	id INTEGER NOT NULL, 
	original_sha256 VARCHAR(64) NOT NULL, 
	kernel VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	object_sha256 VARCHAR(64) NOT NULL, 
	speedup FLOAT NOT NULL, 
	timing_source VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	evidence_complete BOOLEAN NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_replacement PRIMARY KEY (id), 
	CONSTRAINT uq_replacement_candidate_id UNIQUE (candidate_id), 
	CONSTRAINT ck_replacement_timing_source CHECK (timing_source IN ('measured', 'modelled')), 
	CONSTRAINT ck_replacement_speedup CHECK (speedup > 0), 
	CONSTRAINT fk_replacement_original_sha256 FOREIGN KEY(original_sha256) REFERENCES code_object (sha256), 
	CONSTRAINT fk_replacement_candidate_id FOREIGN KEY(candidate_id) REFERENCES candidate (id), 
	CONSTRAINT fk_replacement_object_sha256 FOREIGN KEY(object_sha256) REFERENCES code_object (sha256)
);
INSERT INTO "replacement" VALUES(1,'445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','layer_norm_kernel_func','c2','82a5816eceaebef6a7c05063305beee89369f63e7196e950cc0d804f7fa89cca',1.5,'measured','device-measured',1,'2026-11-30 07:30:43.222555');
CREATE TABLE run (
	id VARCHAR NOT NULL, 
	task VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	started DATETIME NOT NULL, 
	finished DATETIME, 
	config_sha256 VARCHAR(64) NOT NULL, 
	seed INTEGER NOT NULL, 
	package_version VARCHAR NOT NULL, 
	toolchain JSON NOT NULL, 
	device VARCHAR NOT NULL, 
	device_source VARCHAR NOT NULL, 
	CONSTRAINT pk_run PRIMARY KEY (id), 
	CONSTRAINT ck_run_device_source CHECK (device_source IN ('measured', 'modelled'))
);
INSERT INTO "run" VALUES('20261130T073043Z-ffc4c69d','optimize','completed','2026-11-30 07:30:43.123725','2026-11-30 07:30:43.229101','dde34603c53e3392507752de92e5519ab918c5cc850d550fdd0c06553ccdd6a9',1,'0.1.0','{"assembler":"22.1"}','device-measured','measured');
CREATE TABLE timing (
	id INTEGER NOT NULL, 
	run_id VARCHAR NOT NULL, 
	candidate_id VARCHAR, 
	original_sha256 VARCHAR(64), 
	dispatch_sha256 VARCHAR(64) NOT NULL, 
	samples JSON NOT NULL, 
	unit VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	warmup INTEGER NOT NULL, 
	CONSTRAINT pk_timing PRIMARY KEY (id), 
	CONSTRAINT ck_timing_subject CHECK ((candidate_id IS NULL) <> (original_sha256 IS NULL)), 
	CONSTRAINT ck_timing_source CHECK (source IN ('measured', 'modelled')), 
	CONSTRAINT fk_timing_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_timing_candidate_id FOREIGN KEY(candidate_id) REFERENCES candidate (id), 
	CONSTRAINT fk_timing_original_sha256 FOREIGN KEY(original_sha256) REFERENCES code_object (sha256), 
	CONSTRAINT fk_timing_dispatch_sha256 FOREIGN KEY(dispatch_sha256) REFERENCES dispatch (sha256)
);
INSERT INTO "timing" VALUES(1,'20261130T073043Z-ffc4c69d',NULL,'445c83f482a1a153e04c95bfd387a93d851aaa41520f7cc2d7776f7eea9f33b9','0764932a77d312fb13399f24a97c9e23c1763512be765ac057202e6c6c8288f9','[12.5,13.0]','us','measured','device-measured',3);
INSERT INTO "timing" VALUES(2,'20261130T073043Z-ffc4c69d','c1',NULL,'0764932a77d312fb13399f24a97c9e23c1763512be765ac057202e6c6c8288f9','[10.5,10.25]','us','measured','device-measured',3);
INSERT INTO "timing" VALUES(3,'20261130T073043Z-ffc4c69d','c2',NULL,'0764932a77d312fb13399f24a97c9e23c1763512be765ac057202e6c6c8288f9','[10.5,10.25]','us','measured','device-measured',3);
CREATE TABLE verdict (
	id INTEGER NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	gate VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	outcome VARCHAR NOT NULL, 
	code VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	evidence JSON NOT NULL, 
	CONSTRAINT pk_verdict PRIMARY KEY (id), 
	CONSTRAINT uq_verdict_candidate_id_gate_attempt UNIQUE (candidate_id, gate, attempt), 
	CONSTRAINT ck_verdict_outcome CHECK (outcome IN ('pass', 'fail', 'missing')), 
	CONSTRAINT fk_verdict_candidate_id FOREIGN KEY(candidate_id) REFERENCES candidate (id)
);
INSERT INTO "verdict" VALUES(1,'c1','G0',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(2,'c1','G1',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(3,'c1','G2',1,'fail','mismatch','output y differs','{"at":[3]}');
INSERT INTO "verdict" VALUES(4,'c2','G0',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(5,'c2','G1',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(6,'c2','G2',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(7,'c2','G2',2,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(8,'c2','G2',3,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(9,'c2','G3',1,'pass','ok','fine','{"cosine":1.0}');
INSERT INTO "verdict" VALUES(10,'c2','G4',1,'pass','ok','fine','{"cosine":1.0}');
CREATE INDEX ix_dispatch_kernel ON dispatch (kernel);
CREATE INDEX ix_run_started ON run (started);
CREATE INDEX ix_recovered_object_code_object_sha256 ON recovered_object (code_object_sha256);
CREATE INDEX ix_candidate_run_id ON candidate (run_id);
CREATE INDEX ix_candidate_original_sha256 ON candidate (original_sha256);
CREATE INDEX ix_candidate_parent_id ON candidate (parent_id);
CREATE INDEX ix_candidate_object_sha256 ON candidate (object_sha256);
CREATE INDEX ix_timing_run_id ON timing (run_id);
CREATE INDEX ix_timing_original_sha256 ON timing (original_sha256);
CREATE INDEX ix_timing_dispatch_sha256 ON timing (dispatch_sha256);
CREATE INDEX ix_timing_candidate_id ON timing (candidate_id);
CREATE INDEX ix_replacement_object_sha256 ON replacement (object_sha256);
CREATE INDEX ix_replacement_original_sha256_kernel ON replacement (original_sha256, kernel);
COMMIT;
